"""MCP clients that vanish while something moves: mcp_vanishes.py DOOR BUS MOTOR_LOG URL TOKEN. By hand, without a client library.

Each way to vanish is tried in both eras of the protocol where both have it, by four clients at a time, each of which moves
a part of its own. The motor commands of testbed are lines of MOTOR_LOG with the monotonic clock.
"""
import json
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlparse

from motor_log import moves, steps_since

DOOR, BUS, MOTOR_LOG, URL, TOKEN = sys.argv[1:6]
DEADLINE = 60
# Hundreds of steps.
STILL = 0.5
# How long a call may take beside clients that do not read; a door that waits for one of them takes seconds longer.
PROMPT = 1.5
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


def call(era, part, **more):
    """A call that moves a part for minutes."""
    params = {
        "name": "assemble",
        "arguments": {"subsystems": [part], "step_ms": 2, "steps": 100_000, "timeout_ms": 300_000},
        "_meta": dict(META if era == "modern" else {}, **more),
    }
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}


def listing(era, number):
    params = {"_meta": META} if era == "modern" else {}
    return {"jsonrpc": "2.0", "id": 100 + number, "method": "tools/list", "params": params}


def moving(part):
    begun = time.monotonic()
    while not steps_since(MOTOR_LOG, begun, part):
        assert time.monotonic() < begun + DEADLINE, f"{part} does not move"
        time.sleep(0.01)


def at_rest(since, bound, what, part):
    """It comes to rest, and not later than `bound` seconds after `since`."""
    while (last := max(moves(MOTOR_LOG, part))) > time.monotonic() - STILL:
        assert time.monotonic() < since + bound + STILL, f"{what}: it still moves"
        time.sleep(0.05)
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
        # Read first: the door may wait until what it has written is read.
        lines = self.process.stdout.read().splitlines()
        assert self.process.wait(DEADLINE) == code, self.process.returncode
        # The last line may be half written where the door was killed, or did not wait for a client that does not read.
        for line in lines[:-1]:
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
            name = message["params"]["name"]
            headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}
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


def tried(part, kind, era, way, bound, least=None):
    client = kind(era)
    # Over HTTP a client that does not read is sent nothing but progress: each step of it carries the token, far more of which
    # do not fit into a connection.
    token = "p" * (1 << 19) if (kind, way) == (Http, "does not read") else "p"
    # With progress, so that there is something to write to a client that is gone.
    client.send(call(era, part, progressToken=token))
    moving(part)
    since = time.monotonic()
    if (kind, way) == (Stdio, "does not read"):
        # Answers for far more than a pipe holds.
        for number in range(40):
            client.send(listing(era, number))
    elif way not in ("is silent", "does not read"):
        getattr(client, way)()
    took = at_rest(since, bound, f"{kind.__name__} {era} {way}", part)
    # It moves on for a client that may still be there.
    assert least is None or took >= least, f"{way}: it moved for only {took:.3f} s"
    if way in ("is silent", "does not read"):
        client.closes()
    client.ended(-9 if way == "is_killed" else 0)


class Beside:
    """A client that calls all the time, through the same door."""

    def __init__(self):
        self.longest, self.calls, self.failure, self.over = 0, 0, None, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ping", "_meta": META}}
        while not self.over.wait(0.02):
            client, begun = Http("modern"), time.monotonic()
            client.post(request)
            try:
                client.until(b'"pong":true')
            except Exception as failure:
                self.failure = failure
                return
            finally:
                client.socket.close()
            self.longest, self.calls = max(self.longest, time.monotonic() - begun), self.calls + 1

    def ends(self):
        self.over.set()
        self.thread.join()
        assert self.failure is None, self.failure
        assert self.calls > 10 and self.longest < PROMPT, f"{self.calls} calls, the longest took {self.longest:.3f} s"
        print(f"beside them: {self.calls} calls, the longest took {self.longest * 1000:.0f} ms")


LANES = {
    "left_arm": [(kind, "legacy", way, 1.5) for kind, way in ((Stdio, "closes"), (Http, "closes"), (Http, "resets"))]
    + [(Stdio, "legacy", "is_killed", 2)],
    "right_arm": [(kind, "modern", way, 1.5) for kind, way in ((Stdio, "closes"), (Http, "closes"), (Http, "resets"))],
    # It has a ping only in the legacy era.
    "gantry": [(Stdio, "legacy", "is silent", 6, 1.5), (Stdio, "modern", "does not read", 6)],
    "base": [(Http, "legacy", "is silent", 6, 1.5), (Http, "modern", "does not read", 6, 1.5)],
}


def lane(part):
    for way in LANES[part]:
        tried(part, *way)


beside = Beside()
try:
    with ThreadPoolExecutor() as lanes:
        list(lanes.map(lane, LANES))
finally:
    beside.ends()
print("everything comes to rest")
