"""Does nothing wrong."""
import json
import os
import sys

from program import Mover, tool


class Good(Mover):
    functions = {"plan": True, "conclude": True, "halt": True, "safe_stop": True, "message": True}
    manifest = {"version": "3", "description": "Is good.", "subscribes": ["speak"], "requests": ["battery.level"]}
    tools = Mover.tools + [tool("surroundings", "read")]

    def safe_stop(self, config):
        with open(config["trace"], "a") as trace:
            trace.write("safe_stop\n")

    def on_start(self, order):
        if order["start"]["action"]["name"] != "surroundings":
            return super().on_start(order)
        umask = os.umask(0o077)
        self.ended(
            order["run"],
            folder=os.getcwd(),
            files=os.listdir("."),
            mode=os.stat(".").st_mode & 0o777,
            umask=umask,
            stdin=os.readlink("/proc/self/fd/0"),
            output=os.readlink("/proc/self/fd/1") == os.readlink("/proc/self/fd/2"),
            open=sorted(int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + fd)),
            mark=os.environ.get("MARK"),
            secret=os.environ.get("SECRET_OF_THE_SERVICE"),
            config=self.config,
        )


Good().run()
