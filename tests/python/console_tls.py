"""A browser's view of the page beyond loopback: console_tls.py URL CERTIFICATE. URL has the token of an operator."""

import http.client
import json
import ssl
import sys
from urllib.parse import urlsplit

url, certificate = urlsplit(sys.argv[1]), sys.argv[2]
token = url.fragment.removeprefix("token=")
here = url.netloc


def ask(connection, method, path, headers, body=None):
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read()


def secure():
    # The certificate is trusted because it is this one, and its names are checked.
    return http.client.HTTPSConnection(url.hostname, url.port, context=ssl.create_default_context(cafile=certificate))


for version in [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]:
    context = ssl.create_default_context(cafile=certificate)
    context.minimum_version = context.maximum_version = version
    connection = http.client.HTTPSConnection(url.hostname, url.port, context=context)
    status, headers, _ = ask(connection, "GET", "/", {"Host": here})
    assert status == 200 and "content-security-policy" in headers, (version, status)

sign_in = json.dumps({"token": token})
ours = {"Host": here, "x-ovos-tools": "1", "Content-Type": "application/json"}
for origin, expected in [(f"https://{here}", 200), (f"http://{here}", 403), ("https://evil.test", 403), (None, 403)]:
    given = ours | ({"Origin": origin} if origin else {})
    status, headers, said = ask(secure(), "POST", "/api/session", given, sign_in)
    assert status == expected, (origin, status, said)
    if expected == 200:
        cookie = headers["set-cookie"]
        assert "Secure" in cookie and "HttpOnly" in cookie and "SameSite=Strict" in cookie, cookie
status, _, _ = ask(secure(), "GET", "/api/state", {"Host": here, "Cookie": cookie.split(";")[0]})
assert status == 200, status
status, _, _ = ask(secure(), "GET", "/", {"Host": "evil.test"})
assert status == 403, status

# Nothing is answered without TLS.
plain = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
try:
    status, _, _ = ask(plain, "GET", "/", {"Host": here})
    raise AssertionError(f"answered {status} without TLS")
except (http.client.HTTPException, ConnectionError):
    pass
print("done")
