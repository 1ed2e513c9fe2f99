"""The MCP clients of agents' frameworks, each giving what a model of that framework reads: `open_session(PEER, ...)`, where PEER is
`langchain`, `openai-agents`, `pydantic-ai` or `mcp-use`."""
import json
import os
from contextlib import asynccontextmanager
from datetime import timedelta
from types import SimpleNamespace


class Session:
    """Calls tools through `call`, which returns what a model reads and whether it is an error."""

    def __init__(self, call):
        self._call = call

    async def call_tool(self, name, arguments, read_timeout_seconds=None):
        shown, is_error = await self._call(name, arguments)
        text = shown if isinstance(shown, str) else json.dumps(shown)
        data = shown if isinstance(shown, dict) else {}
        return SimpleNamespace(
            is_error=is_error, content=[SimpleNamespace(text=text)], structured_content=data
        )


def of_result(result):
    """What frameworks make of a result of the SDK: the texts."""
    return "\n".join(block.text for block in result.content if block.type == "text"), bool(result.isError)


@asynccontextmanager
async def open_session(peer, transport, door, bus, url, token, patience):
    environment, headers = dict(os.environ), {"Authorization": f"Bearer {token}"}
    process = {"command": door, "args": ["--bus", bus], "env": environment}
    async with PEERS[peer](transport == "stdio", process, url, headers, patience) as call:
        yield Session(call)


@asynccontextmanager
async def langchain(at_stdio, process, url, headers, patience):
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from langchain_mcp_adapters.tools import load_mcp_tools

    server = {"transport": "stdio", **process} if at_stdio else {"transport": "streamable_http", "url": url, "headers": headers}
    server["session_kwargs"] = {"read_timeout_seconds": timedelta(seconds=patience)}
    client = MultiServerMCPClient({"door": server})
    async with client.session("door") as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}

        async def call(name, arguments):
            message = await tools[name].ainvoke({"type": "tool_call", "id": "1", "name": name, "args": arguments})
            return "\n".join(block["text"] for block in message.content if block["type"] == "text"), message.status == "error"

        yield call


@asynccontextmanager
async def openai_agents(at_stdio, process, url, headers, patience):
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

    if at_stdio:
        server = MCPServerStdio(params=process, client_session_timeout_seconds=patience)
    else:
        server = MCPServerStreamableHttp(params={"url": url, "headers": headers}, client_session_timeout_seconds=patience)
    async with server:

        async def call(name, arguments):
            return of_result(await server.call_tool(name, arguments))

        yield call


@asynccontextmanager
async def pydantic_ai(at_stdio, process, url, headers, patience):
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.exceptions import ModelRetry
    from pydantic_ai.mcp import MCPToolset

    if at_stdio:
        server = MCPToolset(StdioTransport(process["command"], process["args"], env=process["env"]), read_timeout=patience)
    else:
        server = MCPToolset(url, headers=headers, read_timeout=patience)
    async with server:

        async def call(name, arguments):
            try:
                return await server.direct_call_tool(name, arguments), False
            except ModelRetry as error:
                return str(error), True

        yield call


@asynccontextmanager
async def mcp_use(at_stdio, process, url, headers, patience):
    os.environ["MCP_USE_ANONYMIZED_TELEMETRY"] = "false"
    from mcp_use import MCPClient

    server = process if at_stdio else {"url": url, "headers": headers}
    client = MCPClient.from_dict({"mcpServers": {"door": server}})
    session = await client.create_session("door")

    async def call(name, arguments):
        return of_result(await session.call_tool(name, arguments, timedelta(seconds=patience)))

    try:
        yield call
    finally:
        await client.close_all_sessions()


PEERS = {"langchain": langchain, "openai-agents": openai_agents, "pydantic-ai": pydantic_ai, "mcp-use": mcp_use}
