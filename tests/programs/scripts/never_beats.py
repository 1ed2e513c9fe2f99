"""Gives no sign of life."""
from program import Program


class Never(Program):
    def on_start(self, order):
        pass

    def on_beat(self, order):
        pass


Never().run()
