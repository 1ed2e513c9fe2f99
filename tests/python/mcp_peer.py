"""A session of a published MCP client with the door: PEER is `mcp` or `fastmcp`, ERA `legacy` (up to 2025-11-25) or `modern`
(2026-07-28), TRANSPORT `stdio`, which starts DOOR, or `http`, which connects to URL."""
import os
from contextlib import asynccontextmanager


@asynccontextmanager
async def connected(peer, era, transport, door, bus, url="", token="", on_message=None):
    arguments, environment = ["--bus", bus], dict(os.environ)
    if peer == "fastmcp":
        # Each library takes a second to import.
        import fastmcp
        from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

        if transport == "stdio":
            via = StdioTransport(door, arguments, env=environment, keep_alive=False)
        else:
            via = StreamableHttpTransport(url, headers={"Authorization": f"Bearer {token}"})
        mode = "legacy" if era == "legacy" else "auto"
        async with fastmcp.Client(via, mode=mode, message_handler=on_message) as client:
            yield client.session
        return

    import httpx2
    from mcp.client.session import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    if transport == "stdio":
        streams = stdio_client(StdioServerParameters(command=door, args=arguments, env=environment))
    else:
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=httpx2.Timeout(30, read=300))
        streams = streamable_http_client(url, http_client=http)
    async with streams as (read, write, *_):
        async with ClientSession(read, write, message_handler=on_message) as session:
            await (session.initialize() if era == "legacy" else session.discover())
            yield session
