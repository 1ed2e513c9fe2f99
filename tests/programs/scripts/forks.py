"""Leaves a process behind that holds both sockets, and ends."""
import os
import time

from program import Program


class Forks(Program):
    def on_start(self, order):
        if os.fork() == 0:
            os.setsid()
            time.sleep(30)
            os._exit(0)
        os._exit(3)


Forks().run()
