"""Answers no halt, and floods the control lane where its argument says so."""
import sys
import threading

from program import Mover, frame


class Never(Mover):
    def on_start(self, order):
        if sys.argv[2:3] == ["floods"]:
            threading.Thread(target=self.flood, daemon=True).start()

    def flood(self):
        beats = frame("notice", "beat", {"seq": 1}) * 100
        while True:
            self.control.sendall(beats)

    def on_halt(self, order):
        pass


Never().run()
