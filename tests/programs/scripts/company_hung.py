"""Hangs like a native call that holds the interpreter: it closes nothing, and neither a signal nor the end of its sockets ends it."""
import signal
import threading

from company import Company, Member


class HungMember(Member):
    def on_close(self, order):
        pass


class Hung(Company):
    member = HungMember

    def on_close(self, order):
        pass

    def exactly(self, lane, count):
        text = b""
        while len(text) < count:
            piece = lane.recv(count - len(text))
            if not piece:
                threading.Event().wait()
            text += piece
        return text


signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
Hung().run()
