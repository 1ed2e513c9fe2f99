"""Wants to be replaced while something moves."""
import os

from program import Mover


class LeavesMoving(Mover):
    def on_start(self, order):
        os._exit(75)


LeavesMoving().run()
