"""A server made with the published fastmcp: over stdio, or with a PORT over HTTP at /mcp.

    fast.py [PORT [TOKEN]]

With a TOKEN it answers only requests that bear it, or `little`, with which no tool may be called.
"""

import asyncio
import sys

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.types import Image

PORT, TOKEN = (sys.argv[1:] + [None, None])[:2]
server = FastMCP("fast")


@server.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool
def profile(name: str) -> dict[str, str]:
    """Describes a person."""
    return {"name": name, "initial": name[:1]}


@server.tool(annotations={"readOnlyHint": True})
def fail() -> str:
    """Fails."""
    raise ToolError("there is no such city")


@server.tool
def picture() -> Image:
    """Takes a picture."""
    return Image(data=b"\x89PNG\r\n\x1a\n", format="png")


@server.tool
async def slow(steps: int, ctx: Context) -> str:
    """Takes a tenth of a second for each step."""
    try:
        for step in range(steps):
            await ctx.report_progress(step + 1, steps, f"step {step + 1}")
            await asyncio.sleep(0.1)
    except asyncio.CancelledError:
        print("slow was cancelled", file=sys.stderr, flush=True)
        raise
    return "done"


class Bearer:
    """Answers only requests that bear the token."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def refuse(status, headers=()):
            await send({"type": "http.response.start", "status": status, "headers": list(headers)})
            await send({"type": "http.response.body", "body": b"no token"})

        bearer = dict(scope["headers"]).get(b"authorization")
        if bearer not in (f"Bearer {TOKEN}".encode(), b"Bearer little"):
            return await refuse(401)
        begun = [await receive()]
        if bearer == b"Bearer little" and b'"tools/call"' in begun[0].get("body", b""):
            return await refuse(403, [(b"www-authenticate", b'Bearer error="insufficient_scope", scope="act"')])

        async def again():
            return begun.pop() if begun else await receive()

        await self.app(scope, again, send)


if PORT is None:
    server.run(show_banner=False)
else:
    import uvicorn

    app = server.http_app(path="/mcp")
    uvicorn.run(Bearer(app) if TOKEN else app, host="127.0.0.1", port=int(PORT), log_level="warning")
