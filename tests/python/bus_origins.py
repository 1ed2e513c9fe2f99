"""Clients of websocket-client on our bus, which is what OVOS's own clients are made of: bus_origins.py URL HOST:PORT."""
import sys

import websocket

from ovos_bus_client import Message, MessageBusClient

URL, HOST = sys.argv[1:3]
DEADLINE = 60

# Those of OVOS send the Host as their Origin.
bus = MessageBusClient(host=HOST.split(":")[0], port=int(HOST.split(":")[1]))
bus.run_in_thread()
assert bus.connected_event.wait(DEADLINE), "no bus"
answer = bus.wait_for_response(Message("ovos.tools.invoke", {"name": "add", "args": {"a": 1, "b": 2}}), timeout=DEADLINE)
assert answer is not None and answer.data["result"] == {"result": 3}, answer and answer.data
for more in ({}, {"origin": f"http://{HOST}"}, {"suppress_origin": True}):
    websocket.create_connection(URL, timeout=DEADLINE, **more).close()
for origin in ("https://evil.example", "null", f"http://{HOST}.evil.example", "http://localhost:1"):
    try:
        websocket.create_connection(URL, timeout=DEADLINE, origin=origin)
        raise AssertionError(f"{origin} was let in")
    except websocket.WebSocketBadStatusException as refused:
        assert refused.status_code == 403, refused
print("the clients of Python have their answers")
bus.close()
