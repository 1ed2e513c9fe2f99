"""Says in the name of one toolbox what another was asked, and more, when `poke` of its first one is called."""
import sys

from company import Company, Member

HOW = sys.argv.pop(2)


class Forger(Member):
    def on_start(self, order):
        if order["start"]["action"]["name"] == "poke" and self.id == self.company.ids[0]:
            self.company.forge(order["run"])
        super().on_start(order)


class Forging(Company):
    member = Forger

    def forge(self, run):
        first = self.ids[0]
        if HOW == "address":
            return self.send("ended", {"run": run, "end": {"output": {}}}, 7)
        if HOW == "nonsense":
            return self.send("ended", {"run": "x", "end": {}}, first)
        self.hello()
        for toolbox in [first, "nowhere", "good", "next-door", None, ""]:
            for forged in range(run + 100):
                if forged != run or toolbox != first:
                    self.send("ended", {"run": forged, "end": {"output": {"forged": True}}}, toolbox)
            for seq in range(200):
                if toolbox != first:
                    self.send("closed", {"seq": seq, "in_time": True}, toolbox or "nowhere")
                self.send("tools", {"seq": seq, "answer": {"ok": {"tools": []}}}, toolbox)
                self.send("opened", {"seq": seq, "answer": {"ok": {"plan": True}}}, toolbox)
                self.send_control("halted", {"seq": seq, "answer": {"ok": None}}, toolbox)
            self.send("event", {"kind": "tools_changed", "severity": "info"}, toolbox or "nowhere")
            self.send("request", {"request": 1, "topic": "speak", "data": {}, "timeout_ms": 10}, toolbox)
        many = [f"{first}-{number}" for number in range(300)]
        self.offer(many)
        self.send("event", {"kind": "offers_changed", "severity": "info", "data": {"toolboxes": "none"}})


Forging().run()
