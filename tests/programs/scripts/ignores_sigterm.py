"""Ignores SIGTERM and the order to close."""
import signal

from program import Program


class Ignores(Program):
    def on_close(self, order):
        pass


signal.signal(signal.SIGTERM, signal.SIG_IGN)
Ignores().run()
