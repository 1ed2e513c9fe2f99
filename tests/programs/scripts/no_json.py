"""Says something that is no JSON, in the middle of its life."""
from program import Program


class NoJson(Program):
    def on_start(self, order):
        self.data.sendall(b"\x05\x00\x00\x00nonse")


NoJson().run()
