"""Returns more than is accepted."""
from program import Program


class Long(Program):
    def on_start(self, order):
        self.ended(order["run"], text="x" * (9 << 20))


Long().run()
