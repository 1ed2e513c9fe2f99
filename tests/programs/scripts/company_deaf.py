"""Does not do what its second argument says: halts nothing at all, or not the last of several."""
import sys

from company import Company, Member

HOW = sys.argv.pop(2)


class DeafMember(Member):
    def on_halt(self, order):
        # On a busy machine each may get a halt of its own.
        if HOW == "last" and self.id == self.company.ids[-1]:
            failure = {"kind": "ToolboxError", "message": "it hangs"}
            self.say_control("halted", seq=order["seq"], answer={"error": failure})
        elif HOW == "last":
            super().on_halt(order)


class Deaf(Company):
    member = DeafMember

    def on_halt(self, order):
        self.halts.append(order["toolboxes"])
        last = order["toolboxes"][-1]
        failure = {"kind": "ToolboxError", "message": f"not reached: {last}", "data": {"toolboxes": {last: "it hangs"}}}
        if HOW != "silent":
            self.send_control("halted", {"seq": order["seq"], "answer": {"error": failure}})


Deaf().run()
