"""Leaves its tools to others of the same name."""
from program import Program, tool


class Yields(Program):
    manifest = {"yields": True}
    tools = [tool("poke", "write"), tool("own", "read")]


Yields().run()
