"""Writes to stdout."""
import os

from program import Program

print("printed before hello", flush=True)


class Prints(Program):
    def on_start(self, order):
        print("printed in start", flush=True)
        os.write(1, b"\x00\xff" * 1000 + b"\n")
        super().on_start(order)


Prints().run()
