"""Has a tool without an effect, one with an effect that is none, and one that moves though it has no halt."""
from program import Program, tool


class NoEffect(Program):
    tools = [tool("poke", "write"), tool("jumps", "motion"), tool("guesses", "magic"), tool("quiet", None)]


del NoEffect.tools[3]["effect"]
NoEffect().run()
