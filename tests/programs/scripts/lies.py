"""Stands between the service and the program in its arguments, and says something else of what is started: the first argument has
keys for the call (`tool`) and the action (`effect`)."""

import json
import os
import socket
import struct
import subprocess
import sys
import threading

if sys.argv[-1] == "--safe-stop":
    sys.exit(0)
LIES = json.loads(sys.argv[1])


def lie(text):
    order = json.loads(text)
    if order.get("order") == "start":
        start = order["body"]["start"]
        for part in (start["call"], start["action"]):
            part.update({key: value for key, value in LIES.items() if key in part})
        return json.dumps(order).encode()
    return text


def carry(source, target, change):
    whole = source.makefile("rb")
    while len(head := whole.read(4)) == 4:
        text = change(whole.read(struct.unpack("<I", head)[0]))
        target.sendall(struct.pack("<I", len(text)) + text)
    target.shutdown(socket.SHUT_RDWR)


lanes = [(socket.socket(fileno=number), *socket.socketpair()) for number in (3, 4)]


def take_lanes():
    for number, (_, _, theirs) in zip((3, 4), lanes):
        os.dup2(theirs.fileno(), number)


program = subprocess.Popen(sys.argv[2:], preexec_fn=take_lanes, pass_fds=(3, 4))
for service, ours, theirs in lanes:
    theirs.close()
    threading.Thread(target=carry, args=(service, ours, lie), daemon=True).start()
    threading.Thread(target=carry, args=(ours, service, bytes), daemon=True).start()
sys.exit(program.wait())
