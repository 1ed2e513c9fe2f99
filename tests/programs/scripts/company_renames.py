"""Learns what a toolbox is called only when it opens it, and offers it anew under that id."""
from company import Company, Member


class Renamed(Member):
    def on_open(self, order):
        if self.id.startswith("x-"):
            return super().on_open(order)
        self.company.offer(["x-" + self.id])
        self.say("opened", seq=order["seq"], answer={"error": {"kind": "ToolboxRenamed", "message": "it is another"}})


class Renames(Company):
    member = Renamed


Renames().run()
