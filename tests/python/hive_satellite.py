"""A HiveMind hub on our bus, and a satellite that calls a tool and is refused what it may not send: hive_satellite.py URL.

Starts the hub as docs/hivemind.md says, with a port of its own.
"""
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlparse

from hivemind_bus_client import HiveMessageBusClient
from ovos_bus_client import Message

URL = urlparse(sys.argv[1])
DEADLINE = 60
KEY, PASSWORD = "0123456789abcdef", "correct horse battery staple 42"
HUB = str(Path(sys.executable).with_name("hivemind-core"))

with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
folder = Path(os.environ["XDG_CONFIG_HOME"]) / "hivemind-core"
folder.mkdir(parents=True)
(folder / "server.json").write_text(json.dumps({
    "agent_protocol": {"module": "hivemind-ovos-agent-plugin",
                       "hivemind-ovos-agent-plugin": {"host": URL.hostname, "port": URL.port}},
    "network_protocol": {"hivemind-websocket-plugin": {"host": "127.0.0.1", "port": port, "ssl": False}},
    "database": {"module": "hivemind-json-db-plugin", "hivemind-json-db-plugin": {"name": "clients", "subfolder": "hivemind-core"}},
    "presence": {"enabled": False},
}))
subprocess.run([HUB, "add-client", "--name", "kitchen", "--access-key", KEY, "--password", PASSWORD, "--allow", "ovos.tools.invoke"],
               check=True, stdout=subprocess.DEVNULL)
hub = subprocess.Popen([HUB, "listen"])
try:
    end = time.monotonic() + DEADLINE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except ConnectionRefusedError:
            assert hub.poll() is None and time.monotonic() < end, "the hub does not listen"
            time.sleep(0.1)
    satellite = HiveMessageBusClient(key=KEY, password=PASSWORD, host="ws://127.0.0.1", port=port, useragent="kitchen")
    satellite.connect(site_id="kitchen")
    answer = satellite.wait_for_response(Message("ovos.tools.invoke", {"name": "add", "args": {"a": 1, "b": 2}}),
                                         "ovos.tools.invoke.response", timeout=DEADLINE)
    assert answer is not None and answer.payload.data["result"] == {"result": 3}, answer
    print("the satellite has its answer")
finally:
    hub.kill()
os._exit(0)
