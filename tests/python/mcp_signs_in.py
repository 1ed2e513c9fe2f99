"""A published client (`mcp`) signs in at the issuer that the door names, and calls tools with what it may: mcp_signs_in.py URL."""
import asyncio
import sys

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

URL = sys.argv[1]


class Storage:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Browser:
    """Goes where it is sent, and ends at the address to which the issuer sends it back."""

    pages = 0

    async def open(self, page):
        self.pages += 1
        async with httpx2.AsyncClient() as http:
            answer = await http.get(page)
        self.back = dict(httpx2.URL(answer.headers["location"]).params)

    async def came_back(self):
        return AuthorizationCodeResult(code=self.back["code"], state=self.back["state"], iss=self.back.get("iss"))


async def main():
    storage, browser = Storage(), Browser()
    about = OAuthClientMetadata(client_name="door:admin", redirect_uris=["http://127.0.0.1:1/callback"], token_endpoint_auth_method="none")
    auth = OAuthClientProvider(URL, about, storage, browser.open, browser.came_back)
    async with httpx2.AsyncClient(auth=auth, timeout=30) as http:
        async with streamable_http_client(URL, http_client=http) as (read, write, *_):
            async with ClientSession(read, write) as session:
                await session.initialize()
                assert browser.pages == 1 and storage.tokens.scope == "read", storage.tokens
                tools = await session.list_tools()
                assert "wave" not in storage.tokens.access_token and len(tools.tools) > 5
                added = await session.call_tool("add", {"a": 1, "b": 2})
                assert added.structured_content == {"result": 3}, added
                # A tool that changes something needs more: the client signs in again by itself.
                moved = await session.call_tool("assemble", {"subsystems": ["left_arm"], "steps": 1, "step_ms": 1})
                assert not moved.is_error and browser.pages == 2, (moved, browser.pages)
                assert set(storage.tokens.scope.split()) == {"read", "move"}, storage.tokens
                stopped = await session.call_tool("stop_moving", {})
                assert not stopped.is_error, stopped
    print("signed in, and asked for more when more was needed")


asyncio.run(main())
