"""A server of the new era, made with the published `mcp`: over stdio, or with a PORT over HTTP at /mcp.

    listens.py [PORT]

It tells of changed tools to those alone who ask for it with subscriptions/listen.
"""

import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("listens")


@server.tool()
async def grow(ctx: Context) -> str:
    """Has one tool more from now on."""
    server.add_tool(lambda: "grown", name="grown", description="Was not there at first.")
    await ctx.notify_tools_changed()
    return "it grows"


@server.tool()
async def shrink(ctx: Context) -> str:
    """Has that tool no longer."""
    server.remove_tool("grown")
    await ctx.notify_tools_changed()
    return "it shrinks"


if len(sys.argv) == 1:
    server.run()
else:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
