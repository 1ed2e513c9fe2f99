"""An issuer of OAuth 2.1 on this machine, of which everything is in its state: it registers clients, lets everyone sign in as `ada`, and
signs tokens with joserfc. `/token-of` makes a token of any kind, `/mode` makes the keys slow, huge, dead or other ones.

    issuer.py PORT AUDIENCE
"""
import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import sys
import time
from urllib.parse import urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

PORT, AUDIENCE = int(sys.argv[1]), sys.argv[2]
ISSUER = f"http://127.0.0.1:{PORT}"
KEYS = {"rsa": RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"}), "ec": ECKey.generate_key("P-256", {"kid": "ec", "use": "sig"})}
STRANGER = RSAKey.generate_key(2048, {"kid": "rsa"})
state = {"mode": "good", "fetches": 0, "codes": {}, "refresh": {}, "seconds": 600}


def encoded(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def token_of(scope="read", subject="ada", client="tests", seconds=600, **more):
    """A token; `more` are further claims, or `kind`, which says what is wrong with it."""
    now, kind = int(time.time()), more.pop("kind", "right")
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "client_id": client, "scope": scope, "iat": now, "exp": now + seconds}
    claims.update(more)
    key = KEYS["rsa"]
    header = {"alg": "RS256", "kid": key.kid, "typ": "at+jwt"}
    if kind == "elliptic":
        header.update(alg="ES256", kid="ec")
        key = KEYS["ec"]
    elif kind == "issuer":
        claims["iss"] = "https://evil.test"
    elif kind == "audience":
        claims["aud"] = "https://other.test/mcp"
    elif kind == "no audience":
        del claims["aud"]
    elif kind == "expired":
        claims["exp"] = now - 120
    elif kind == "not yet":
        claims["nbf"] = now + 120
    elif kind == "unknown key":
        header["kid"] = "nobody"
    elif kind == "stranger":
        key = STRANGER
    elif kind == "none":
        return f"{encoded({**header, 'alg': 'none'})}.{encoded(claims)}."
    elif kind == "public key as secret":
        # By hand, because joserfc does not do that.
        message = f"{encoded({**header, 'alg': 'HS256'})}.{encoded(claims)}"
        signature = hmac.digest(key.as_pem(private=False), message.encode(), "sha256")
        return f"{message}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    token = jwt.encode(header, claims, key, algorithms=["RS256", "ES256"])
    if kind == "widened":
        head, _, signature = token.split(".")
        token = f"{head}.{encoded({**claims, 'scope': 'read act move'})}.{signature}"
    return token


async def metadata(request):
    return JSONResponse({
        "issuer": ISSUER, "authorization_endpoint": f"{ISSUER}/authorize", "token_endpoint": f"{ISSUER}/token",
        "registration_endpoint": f"{ISSUER}/register", "jwks_uri": f"{ISSUER}/keys", "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"], "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"], "scopes_supported": ["read", "act", "move"],
        "authorization_response_iss_parameter_supported": True,
    })


async def keys(request):
    state["fetches"] += 1
    if state["mode"] == "slow":
        await asyncio.sleep(60)
    if state["mode"] == "huge":
        return Response(b'{"keys": [' + b'{"kty": "RSA"},' * 100_000 + b"{}]}", media_type="application/json")
    if state["mode"] == "dead":
        return Response("broken", 500)
    return JSONResponse({"keys": [key.as_dict(private=False) for key in KEYS.values()]})


async def register(request):
    wanted = await request.json()
    return JSONResponse({**wanted, "client_id": secrets.token_hex(8), "token_endpoint_auth_method": "none"}, 201)


async def authorize(request):
    """The person says yes at once."""
    asked = dict(request.query_params)
    code = secrets.token_hex(8)
    state["codes"][code] = asked
    back = {"code": code, "state": asked["state"], "iss": ISSUER}
    return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(back)}", 302)


async def token(request):
    form = dict(await request.form())
    if form["grant_type"] == "refresh_token":
        asked = state["refresh"].pop(form["refresh_token"], None)
    else:
        asked = state["codes"].pop(form["code"], None)
        proof = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if asked and (proof != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]):
            asked = None
    if asked is None or asked["client_id"] != form["client_id"]:
        return JSONResponse({"error": "invalid_grant"}, 400)
    renewal = secrets.token_hex(16)
    state["refresh"][renewal] = asked
    scope = asked.get("scope", "")
    access = token_of(scope, client=asked["client_id"], seconds=state["seconds"], aud=asked.get("resource", AUDIENCE))
    return JSONResponse({"access_token": access, "token_type": "Bearer", "expires_in": state["seconds"], "refresh_token": renewal, "scope": scope})


async def make(request):
    return Response(token_of(**await request.json()))


async def mode(request):
    state.update(await request.json())
    if state["mode"] == "rotated":
        KEYS["rsa"] = RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig"})
    return JSONResponse({"fetches": state["fetches"]})


app = Starlette(routes=[
    Route("/.well-known/oauth-authorization-server", metadata), Route("/.well-known/openid-configuration", metadata), Route("/keys", keys),
    Route("/register", register, methods=["POST"]), Route("/authorize", authorize), Route("/token", token, methods=["POST"]),
    Route("/token-of", make, methods=["POST"]), Route("/mode", mode, methods=["POST"]),
])
uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="warning")
