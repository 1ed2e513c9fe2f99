"""A server made with fastmcp whose issuer, made with authlib, gives codes for devices (RFC 8628): gives_codes.py PORT.

Whoever opens the page with a code says yes to it. The issuer gives each client a secret, and wants to see it."""
import os
import secrets
import sys
import time

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

from authlib.oauth2.rfc6749 import AuthorizationServer, ClientMixin, OAuth2Request
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint, DeviceCodeGrant, DeviceCredentialDict
from fastmcp import FastMCP
from fastmcp.server.auth import AccessToken, RemoteAuthProvider, TokenVerifier
from fastmcp.server.dependencies import get_access_token
from starlette.responses import JSONResponse, PlainTextResponse

PORT = int(sys.argv[1])
HOME = f"http://127.0.0.1:{PORT}"
clients, codes, tokens, approved = {}, {}, {}, set()


class Client(ClientMixin):
    def __init__(self, client_id):
        self.client_id, self.secret = client_id, secrets.token_urlsafe(24)

    def get_client_id(self):
        return self.client_id

    def get_allowed_scope(self, scope):
        return scope

    def check_client_secret(self, secret):
        return secret == self.secret

    def check_endpoint_auth_method(self, method, endpoint):
        return method == "client_secret_basic"

    def check_grant_type(self, grant_type):
        return True


class Asked(OAuth2Request):
    form = property(lambda self: self.payload.data)


class Issuer(AuthorizationServer):
    def query_client(self, client_id):
        return clients.get(client_id)

    def save_token(self, token, request):
        # It is for one server.
        tokens[token["access_token"]] = (request.client.client_id, request.payload.data.get("resource"))

    def create_oauth2_request(self, request):
        return request

    def send_signal(self, name, *args, **kwargs):
        pass

    def handle_response(self, status, body, headers):
        return JSONResponse(body, status, dict(headers))


class Codes(DeviceAuthorizationEndpoint):
    INTERVAL = 1

    def get_verification_uri(self):
        return f"{HOME}/device"

    def save_device_credential(self, client_id, scope, data):
        codes[data["device_code"]] = DeviceCredentialDict(client_id=client_id, scope=scope, expires_at=time.time() + 60, **data)


class Grant(DeviceCodeGrant):
    def query_device_credential(self, device_code):
        return codes.get(device_code)

    def query_user_grant(self, user_code):
        return ("ada", True) if user_code in approved else None

    def should_slow_down(self, credential):
        return False


issuer = Issuer()
issuer.register_token_generator("default", lambda **_: {
    "token_type": "Bearer", "access_token": secrets.token_urlsafe(32), "expires_in": 3600})
issuer.register_endpoint(Codes)
issuer.register_grant(Grant)


class Verifier(TokenVerifier):
    async def verify_token(self, token):
        client_id, resource = tokens.get(token, (None, None))
        if resource != f"{HOME}/mcp":
            return None
        return AccessToken(token=token, client_id=client_id, scopes=[])


server = FastMCP("codes", auth=RemoteAuthProvider(Verifier(), authorization_servers=[HOME], base_url=HOME))


@server.tool
def who() -> str:
    return get_access_token().client_id


async def asked(request):
    made = Asked("POST", str(request.url), headers=request.headers)
    made.payload = BasicOAuth2Payload(dict(await request.form()))
    return made


@server.custom_route("/.well-known/oauth-authorization-server", ["GET"])
async def metadata(request):
    return JSONResponse({
        "issuer": HOME, "authorization_endpoint": f"{HOME}/authorize", "token_endpoint": f"{HOME}/token",
        "registration_endpoint": f"{HOME}/register", "device_authorization_endpoint": f"{HOME}/codes",
        "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]})


@server.custom_route("/register", ["POST"])
async def register(request):
    client = Client(secrets.token_hex(8))
    clients[client.client_id] = client
    return JSONResponse({**await request.json(), "client_id": client.client_id, "client_secret": client.secret}, 201)


@server.custom_route("/codes", ["POST"])
async def give_codes(request):
    return issuer.create_endpoint_response("device_authorization", await asked(request))


@server.custom_route("/token", ["POST"])
async def give_token(request):
    return issuer.create_token_response(await asked(request))


@server.custom_route("/device", ["GET"])
async def device(request):
    approved.add(request.query_params["user_code"])
    return PlainTextResponse("Signed in.")


server.run(transport="http", host="127.0.0.1", port=PORT, show_banner=False)
