"""Says more than anything can use: log lines, events, progress, output, nonsense; then it ends its run."""
import sys

from program import Program, frame


class Floods(Program):
    def on_start(self, order):
        run = order["run"]
        for number in range(3000):
            self.say("log", level=1, target="flood", message=f"line {number}")
            self.say("event", kind="flood", severity="info", data={"number": number})
            self.say("event", kind="tools_changed", severity="info")
            self.say("progress", run=run, progress={"fraction": 0.5})
            self.say("no_such_notice", number=number)
        self.say("event", kind="flood", severity="info", data="x" * (20 << 20))
        self.say("log", level=1, target="x" * (1 << 20), message="x" * (20 << 20))
        print("x" * (1 << 20), file=sys.stderr)
        self.ended(run, poked=True)


Floods().run()
