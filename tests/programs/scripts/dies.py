"""Dies in the phase that its argument names."""
import os
import sys

from program import Program

PHASE = sys.argv[2]


class Dies(Program):
    functions = {"plan": True, "conclude": True}

    def hello(self):
        if PHASE == "before":
            self.die()
        super().hello()
        if PHASE == "after":
            self.die()

    def die(self, order=None):
        print("about to die", file=sys.stderr, flush=True)
        os._exit(3)


if PHASE not in ["before", "after"]:
    setattr(Dies, "on_" + PHASE, Dies.die)
Dies().run()
