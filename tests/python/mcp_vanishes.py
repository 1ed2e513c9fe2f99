"""MCP clients that vanish while something moves: mcp_vanishes.py DOOR BUS MOTOR_LOG URL TOKEN. By hand, without a client library.

Each way to vanish is tried in both eras of the protocol where both have it. The motor commands of testbed are lines of
MOTOR_LOG with the monotonic clock.
"""
import json
import os
import socket
import subprocess
import sys
import time
from urllib.parse import urlparse

from motor_log import motors, moves, steps_since

DOOR, BUS, MOTOR_LOG, URL, TOKEN = sys.argv[1:6]
DEADLINE = 60
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "vanishes", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "vanishes", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(era, **more):
    """A call that moves an arm for minutes."""
    params = {
        "name": "assemble",
        "arguments": {"subsystems": ["left_arm"], "step_ms": 2, "steps": 100_000, "timeout_ms": 300_000},
        "_meta": dict(META if era == "modern" else {}, **more),
    }
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}


def moving():
    begun = time.monotonic()
    while not steps_since(MOTOR_LOG, begun):
        assert time.monotonic() < begun + DEADLINE, "nothing moves"
        time.sleep(0.01)


def at_rest(since, bound, what):
    """It comes to rest, and not later than `bound` seconds after `since`."""
    while time.monotonic() < since + bound or motors(MOTOR_LOG)[-1][0] > time.monotonic() - 1:
        assert time.monotonic() < since + bound + DEADLINE, f"{what}: it still moves"
        time.sleep(0.05)
    last = max(moves(MOTOR_LOG))
    assert last - since < bound, f"{what}: it moved until {last - since:.3f} s after"
    print(f"{what}: at rest after {max(last - since, 0) * 1000:.0f} ms", flush=True)
    return last - since


class Stdio:
    def __init__(self, era):
        self.process = subprocess.Popen(
            [DOOR, "--bus", BUS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ)
        )
        if era == "legacy":
            self.send(INITIALIZE)
            answer = json.loads(self.process.stdout.readline())
            assert answer["result"]["protocolVersion"] == "2025-11-25", answer
            self.send(INITIALIZED)

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def closes(self):
        self.process.stdin.close()

    def is_killed(self):
        # The door itself: nothing is left that could end its calls but the service.
        self.process.kill()

    def ended(self, code=0):
        assert self.process.wait(DEADLINE) == code, self.process.returncode
        if code:
            # Its last line may be half written.
            return
        for line in self.process.stdout:
            assert json.loads(line)["jsonrpc"] == "2.0", line


class Http:
    def __init__(self, era):
        self.session = None
        if era == "legacy":
            self.post(INITIALIZE)
            head = self.until(b"\r\n\r\n")
            lines = [line for line in head.decode().splitlines() if line.lower().startswith("mcp-session-id:")]
            assert lines, head
            self.session = lines[0].split(":", 1)[1].strip()
            self.socket.close()
            self.post(INITIALIZED)
            assert b" 202 " in self.until(b"\r\n\r\n")
            self.socket.close()

    def post(self, message):
        url = urlparse(URL)
        body = json.dumps(message).encode()
        headers = {
            "Host": url.netloc, "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream", "Content-Length": str(len(body)),
        }
        if self.session:
            headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-11-25"}
        if message["method"] == "tools/call" and not self.session:
            headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "assemble"}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.socket = socket.create_connection((url.hostname, url.port))
        self.socket.sendall(f"POST {url.path} HTTP/1.1\r\n{head}\r\n".encode() + body)

    def until(self, sign):
        data = b""
        self.socket.settimeout(DEADLINE)
        while sign not in data:
            more = self.socket.recv(4096)
            assert more, data
            data += more
        return data

    send = post

    def closes(self):
        self.socket.close()

    def resets(self):
        # No linger: the connection ends with a reset instead of a farewell.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    def ended(self, code=0):
        pass


def tried(kind, era, way, bound, least=None):
    client = kind(era)
    # With progress, so that there is something to write to a client that is gone.
    client.send(call(era, progressToken="p"))
    moving()
    since = time.monotonic()
    if way != "is silent":
        getattr(client, way)()
    took = at_rest(since, bound, f"{kind.__name__} {era} {way}")
    # It moves on for a client that may still be there.
    assert least is None or took >= least, f"{way}: it moved for only {took:.3f} s"
    if way == "is silent":
        client.closes()
    client.ended(-9 if way == "is_killed" else 0)


for era in ("legacy", "modern"):
    tried(Stdio, era, "closes", 1.5)
    tried(Http, era, "closes", 1.5)
    tried(Http, era, "resets", 1.5)
# It has a ping only in the legacy era.
tried(Stdio, "legacy", "is silent", 6, least=1.5)
tried(Http, "legacy", "is silent", 6, least=1.5)
tried(Stdio, "legacy", "is_killed", 2)
print("everything comes to rest")
