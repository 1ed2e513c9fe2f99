"""Hangs on its data lane, in the phase that its tool is named after, until one of its toolboxes is resumed."""
import os
import threading

from company import Company, Member
from program import tool


class StuckMember(Member):
    functions = {"plan": True, "conclude": True}
    tools = [tool(phase, "write") for phase in ("plan", "start", "conclude")]
    resumed = threading.Event()

    def hang(self, phase, tool):
        if phase == tool:
            self.resumed.clear()
            open(os.environ["TMPDIR"] + f"/company_hangs_{phase}", "w").close()
            self.resumed.wait()

    def on_plan(self, order):
        self.hang("plan", order["tool"])
        super().on_plan(order)

    def on_start(self, order):
        self.hang("start", order["start"]["action"]["name"])
        self.ended(order["run"])

    def on_conclude(self, order):
        self.hang("conclude", order["tool"])
        super().on_conclude(order)

    def on_resume(self, order):
        self.resumed.set()
        super().on_resume(order)


class Stuck(Company):
    member = StuckMember


Stuck().run()
