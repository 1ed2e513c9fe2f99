"""Does not do what its second argument says: halts nothing at all, or not its last toolbox."""
import sys

from company import Company, Member

HOW = sys.argv.pop(2)


class DeafMember(Member):
    def on_halt(self, order):
        if HOW == "last" and self.id == self.company.ids[-1]:
            failure = {"kind": "ToolboxError", "message": "it hangs"}
            self.say_control("halted", seq=order["seq"], answer={"error": failure})
        elif HOW == "last":
            super().on_halt(order)


class Deaf(Company):
    member = DeafMember


Deaf().run()
