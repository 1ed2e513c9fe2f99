"""Ends runs that are not its own, its own twice, and answers orders that were not given."""
from program import Program


class Forger(Program):
    def on_start(self, order):
        run = order["run"]
        for forged in [0, run - 1, run + 1, 2**64 - 1]:
            self.ended(forged, forged=True)
            self.say("progress", run=forged, progress={"fraction": 2})
        for seq in range(100):
            for name in ["planned", "concluded", "tools", "closable"]:
                self.say(name, seq=seq, answer={"ok": None})
            self.say_control("halted", seq=seq, answer={"ok": None})
        self.say("opened", seq=0, answer={"ok": {"plan": True, "conclude": True, "halt": True}})
        self.say("counts", late_completions=2**64 - 1, unknown_completions=2**64 - 1)
        self.ended(run, poked=True)
        self.ended(run, poked=False)


Forger().run()
