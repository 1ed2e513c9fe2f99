"""Speaks another version of the protocol."""
from program import Program


class Old(Program):
    protocol = 1


Old().run()
