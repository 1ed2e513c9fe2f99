"""Speaks docs/protocol.md for the programs of these tests. It does everything as it should, so that each of them can do
one thing wrong: they override a method, or replace what is said."""

import json
import os
import socket
import struct
import sys
import threading

MAX_TEXT = 1 << 20


def frame(kind, name, body, toolbox=None):
    """`toolbox` is for programs that are several."""
    head = {kind: name} if toolbox is None else {kind: name, "toolbox": toolbox}
    text = json.dumps({**head, "body": body}).encode()
    return struct.pack("<I", len(text)) + text


def tool(name, effect):
    schema = {"type": "object"}
    return {
        "name": name,
        "description": "Does one thing.",
        "effect": effect,
        "argument_schema": schema,
        "output_schema": schema,
    }


class Program:
    functions = {}
    tools = [tool("poke", "write")]
    manifest = {}
    protocol = 2

    def __init__(self):
        if sys.argv[-1] == "--safe-stop":
            self.safe_stop(json.load(sys.stdin))
            sys.exit(0)
        self.id = sys.argv[1]
        self.data = socket.socket(fileno=3)
        self.control = socket.socket(fileno=4)
        self.sending = threading.Lock()
        self.config = {}

    # What is said.

    def say(self, name, **body):
        with self.sending:
            self.data.sendall(frame("notice", name, body))

    def answer(self, name, order, value):
        self.say(name, seq=order["seq"], answer={"ok": value})

    def ended(self, run, **output):
        self.say("ended", run=run, end={"output": output})

    def say_control(self, name, **body):
        self.control.sendall(frame("notice", name, body))

    # What happens in each phase.

    def hello(self):
        manifest = {"id": self.id, **self.manifest}
        self.say("hello", protocol=self.protocol, version="1", features=[], toolboxes=[manifest])

    def safe_stop(self, config):
        pass

    def on_open(self, order):
        self.config = order["config"]
        self.answer("opened", order, self.functions)

    def on_tools(self, order):
        self.answer("tools", order, {"tools": self.tools})

    def on_plan(self, order):
        self.answer("planned", order, None)

    def on_start(self, order):
        self.ended(order["run"], poked=True)

    def on_conclude(self, order):
        self.answer("concluded", order, None)

    def on_message(self, order):
        pass

    def on_response(self, order):
        pass

    def on_may_close(self, order):
        self.answer("closable", order, None)

    def on_close(self, order):
        self.say("closed", seq=order["seq"], in_time=True)
        os._exit(0)

    def on_cancel(self, order):
        pass

    on_give_up = on_cancel

    def on_epoch(self, order):
        pass

    def on_halt(self, order):
        self.say_control("halted", seq=order["seq"], answer={"ok": None})

    def on_resume(self, order):
        self.say_control("resumed", seq=order["seq"], answer={"ok": None})

    def on_beat(self, order):
        self.say_control("beat", seq=order["seq"])

    # The lanes.

    def serve(self, lane):
        while True:
            order = self.read(lane)
            getattr(self, "on_" + order["order"], lambda body: None)(order.get("body"))

    def read(self, lane):
        (length,) = struct.unpack("<I", self.exactly(lane, 4))
        return json.loads(self.exactly(lane, length))

    def exactly(self, lane, count):
        text = b""
        while len(text) < count:
            piece = lane.recv(min(count - len(text), MAX_TEXT))
            if not piece:
                os._exit(0)
            text += piece
        return text

    def run(self):
        self.hello()
        threading.Thread(target=self.serve, args=[self.control], daemon=True).start()
        self.serve(self.data)


class Mover(Program):
    """Has a tool that moves until it is cancelled."""

    functions = {"halt": True}
    tools = [tool("poke", "write"), tool("move", "motion")]

    def on_start(self, order):
        if order["start"]["action"]["name"] != "move":
            self.ended(order["run"], poked=True)

    def on_cancel(self, order):
        self.say("ended", run=order["run"], end="cancelled")

    on_give_up = on_cancel
