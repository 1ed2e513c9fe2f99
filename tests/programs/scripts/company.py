"""Is several toolboxes: those of its arguments. Does everything as it should, so that others can do one thing wrong."""
import os
import socket
import sys
import threading

from program import Program, frame, tool


IDS = {"type": "object", "properties": {"ids": {"type": "array"}}, "required": ["ids"]}


class Member(Program):
    """One of them. Its tools have the company do things."""

    tools = [
        tool("poke", "read"),
        tool("waits", "write"),
        {**tool("offer", "write"), "argument_schema": IDS},
        tool("die", "write"),
        tool("halts", "read"),
        tool("jump", "motion"),
    ]

    def __init__(self, company, id):
        self.company, self.id, self.config = company, id, {}

    def say(self, name, **body):
        self.company.send(name, body, self.id)

    def say_control(self, name, **body):
        self.company.send_control(name, body, self.id)

    def on_open(self, order):
        if self.id.startswith("fails"):
            return self.say("opened", seq=order["seq"], answer={"error": {"kind": "HardwareError", "message": "no luck"}})
        if self.id.startswith("hangs"):
            return None
        if self.id.startswith("crashes"):
            os._exit(4)
        return super().on_open(order)

    def on_start(self, order):
        action, run = order["start"]["action"], order["run"]
        name, params = action["name"], action["params"]
        if name == "poke":
            self.ended(run, id=self.id, pid=os.getpid(), config=self.config, opened=self.company.opened)
        elif name == "offer":
            self.company.offer(params["ids"])
            self.ended(run)
        elif name == "die":
            print("about to die", file=sys.stderr, flush=True)
            os._exit(3)
        elif name == "halts":
            self.ended(run, halts=self.company.halts)

    def on_close(self, order):
        if self.id.startswith("hangs"):
            return
        self.company.members.pop(self.id, None)
        self.say("closed", seq=order["seq"], in_time=True)

    def on_halt(self, order):
        self.company.halts.append(self.id)
        super().on_halt(order)


class Company:
    features = ["toolboxes"]
    member = Member

    def __init__(self):
        self.ids = sys.argv[2:]
        self.data = socket.socket(fileno=3)
        self.control = socket.socket(fileno=4)
        self.sending = threading.Lock()
        self.sending_control = threading.Lock()
        self.members = {}
        #: The toolbox of each halt.
        self.halts = []
        #: How many were opened in this process.
        self.opened = 0

    def send(self, name, body, toolbox=None):
        with self.sending:
            self.data.sendall(frame("notice", name, body, toolbox))

    def send_control(self, name, body, toolbox=None):
        with self.sending_control:
            self.control.sendall(frame("notice", name, body, toolbox))

    def manifests(self, ids):
        return [{"id": id, "version": "1", "description": "One of several.", "licence": "MIT"} for id in ids]

    def hello(self):
        hello = {"protocol": 2, "version": "1", "features": self.features, "toolboxes": self.manifests(self.ids)}
        self.send("hello", hello)

    def offer(self, ids):
        """Says what no program may say: another list than that of the hello."""
        data = {"toolboxes": self.manifests(ids)}
        self.send("event", {"kind": "offers_changed", "severity": "info", "data": data})

    # What is about none of them.

    def on_beat(self, order):
        self.send_control("beat", order)

    def on_close(self, order):
        self.send("closed", {"seq": order["seq"], "in_time": True})
        os._exit(0)

    def serve(self, lane):
        while True:
            order = Program.read(self, lane)
            name, body, toolbox = order["order"], order.get("body"), order.get("toolbox")
            if name == "open":
                self.opened += 1
                self.members[toolbox] = self.member(self, toolbox)
            one = self if toolbox is None else self.members.get(toolbox)
            getattr(one, "on_" + name, lambda body: None)(body)

    exactly = Program.exactly

    def run(self):
        self.hello()
        threading.Thread(target=self.serve, args=[self.control], daemon=True).start()
        self.serve(self.data)


if __name__ == "__main__":
    Company().run()
