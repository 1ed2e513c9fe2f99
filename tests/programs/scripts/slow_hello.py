"""Says hello when nothing waits for it any more."""
import time

from program import Program


class Slow(Program):
    def hello(self):
        time.sleep(3600)
        super().hello()


Slow().run()
