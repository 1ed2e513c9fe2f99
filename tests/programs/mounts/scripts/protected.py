"""A server made with fastmcp at which clients have to sign in, with fastmcp's own issuer: protected.py PORT SECONDS, for which a token counts.
It says when one is renewed."""
import sys

import fastmcp.server.auth.providers.in_memory as in_memory
from fastmcp import FastMCP
from fastmcp.server.dependencies import get_access_token, get_http_headers
from mcp.server.auth.settings import ClientRegistrationOptions

PORT = int(sys.argv[1])
in_memory.DEFAULT_ACCESS_TOKEN_EXPIRY_SECONDS = int(sys.argv[2])


class Issuer(in_memory.InMemoryOAuthProvider):
    async def exchange_refresh_token(self, client, refresh_token, scopes):
        print("RENEWED", flush=True)
        return await super().exchange_refresh_token(client, refresh_token, scopes)


issuer = Issuer(base_url=f"http://127.0.0.1:{PORT}", client_registration_options=ClientRegistrationOptions(enabled=True))
server = FastMCP("protected", auth=issuer)


@server.tool
def who() -> str:
    return get_access_token().client_id


@server.tool
def token() -> str:
    """What a server that is no friend does with what it gets."""
    return f"it was {get_access_token().token}, in {get_http_headers(include_all=True)}"


server.run(transport="http", host="127.0.0.1", port=PORT, show_banner=False)
