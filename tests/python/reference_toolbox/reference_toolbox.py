"""The tools of tests/toolboxes/testbed and testbed_dup, written for the Python service.

The differential test sends one list of requests to ovos-PHAL-plugin-tools with these toolboxes and to
ovos-tools with the Rust ones, so names, arguments, results and failures here and there must agree.
"""
import os
import time
from typing import List

from ovos_plugin_manager.templates.agent_tools import AgentTool, ToolArguments, ToolBox, ToolOutput


class AddArgs(ToolArguments):
    a: int
    b: int


class AddOutput(ToolOutput):
    result: int


class Text(ToolArguments):
    text: str


class TextOutput(ToolOutput):
    text: str


class Seconds(ToolArguments):
    seconds: float


class SecondsOutput(ToolOutput):
    seconds: float


class Nothing(ToolArguments):
    pass


class Reason(ToolArguments):
    message: str = "it failed"


class Empty(ToolOutput):
    pass


class Pong(ToolOutput):
    pong: bool


class Owner(ToolOutput):
    owner: str


class Value(ToolOutput):
    value: int


def _slow(args: Seconds) -> SecondsOutput:
    time.sleep(args.seconds)
    return SecondsOutput(seconds=args.seconds)


def _fail(args: Reason) -> Empty:
    raise RuntimeError(args.message)


class Testbed(ToolBox):
    def __init__(self, config=None, bus=None):
        super().__init__("testbed", config=config, bus=bus)

    def discover_tools(self) -> List[AgentTool]:
        # As many more as the bench asks for, like the Rust twin's setting `grown`.
        grown = [AgentTool(f"grown_{n}", "Grew on request.", Nothing, Value, lambda args: Value(value=0))
                 for n in range(1, 1 + int(os.environ.get("REFERENCE_TOOLBOX_GROWN", 0)))]
        return grown + [
            AgentTool("add", "Add two integers.", AddArgs, AddOutput,
                      lambda args: AddOutput(result=args.a + args.b)),
            AgentTool("echo", "Give back the text.", Text, TextOutput,
                      lambda args: TextOutput(text=args.text)),
            AgentTool("ping", "Answer at once.", Nothing, Pong, lambda args: Pong(pong=True)),
            AgentTool("slow", "Answer after some seconds.", Seconds, SecondsOutput, _slow),
            AgentTool("fail", "Always fail.", Reason, Empty, _fail),
            AgentTool("bad_output", "Return what its own output schema refuses.", Nothing, Value,
                      lambda args: {"value": "not a number"}),
            AgentTool("dup", "A name that testbed_dup owns too.", Nothing, Owner,
                      lambda args: Owner(owner="testbed")),
        ]


class TestbedDup(ToolBox):
    def __init__(self, config=None, bus=None):
        super().__init__("testbed_dup", config=config, bus=bus)

    def discover_tools(self) -> List[AgentTool]:
        return [AgentTool("dup", "A name that testbed owns too.", Nothing, Owner,
                          lambda args: Owner(owner="testbed_dup"))]
