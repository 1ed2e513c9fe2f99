"""Says that it has closed, which it was not asked to do, and ends."""
import os

from program import Program


class Closes(Program):
    def on_start(self, order):
        self.say("closed", seq=0, in_time=True)
        os._exit(3)


Closes().run()
