"""Announces a frame of 100 MB: as its hello, or as the answer to a start."""
import struct
import sys
import time

from program import Program


class Long(Program):
    def announce(self):
        self.data.sendall(struct.pack("<I", 100 << 20) + b"{" * 1000)
        time.sleep(3600)

    def hello(self):
        if sys.argv[2] == "hello":
            self.announce()
        super().hello()

    def on_start(self, order):
        self.announce()


Long().run()
