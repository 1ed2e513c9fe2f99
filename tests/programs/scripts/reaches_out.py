"""Says what it may do."""
import os
import socket

from program import Program, tool


def attempt(work):
    try:
        work()
        return "done"
    except OSError as error:
        return os.strerror(error.errno)


class Reaches(Program):
    tools = [tool("poke", "write")]

    def on_start(self, order):
        self.ended(
            order["run"],
            own=attempt(lambda: open("own", "w").close()),
            home=attempt(lambda: open(os.environ["HOME"] + "/other", "w").close()),
            list_home=attempt(lambda: os.listdir(os.environ["HOME"])),
            socket=attempt(lambda: socket.socket().close()),
        )


Reaches().run()
