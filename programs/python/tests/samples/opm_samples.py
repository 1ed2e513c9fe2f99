"""OPM toolboxes, one misbehaviour to a tool. The metadata beside this file makes them entry points."""

import os
import subprocess
import sys
import threading
import time
from typing import Annotated, List, Optional

from ovos_bus_client import Message
from ovos_plugin_manager.templates.agent_tools import AgentTool, ToolArguments, ToolBox, ToolOutput
from pydantic import BeforeValidator, ConfigDict, Field

print("printed to standard output by an import")


class Nothing(ToolArguments):
    pass


class Pair(ToolArguments):
    a: int
    b: int = 1


class Text(ToolArguments):
    text: str = ""


class Value(ToolOutput):
    value: float


class Answer(ToolOutput):
    answer: Optional[str] = None


class Whole(ToolOutput):
    value: int


class Unset(ToolArguments):
    """Its schema says `"type": "string", "default": null`."""

    text: str = None


class Split(ToolArguments):
    """Its schema says that `words` is an array; pydantic takes a text, too."""

    words: Annotated[List[str], BeforeValidator(lambda value: value.split(",") if isinstance(value, str) else value)]


class Named(ToolArguments):
    """Its schema has only the alias; pydantic takes both names."""

    model_config = ConfigDict(populate_by_name=True)
    unit: str = Field(alias="fromUnit")


class Silent(ToolOutput):
    """Its schema says that `answer` is a string."""

    answer: str = None


class Spoken(ToolOutput):
    """Its schema requires `spokenText`; results are dumped with the name of the field."""

    model_config = ConfigDict(populate_by_name=True)
    text: str = Field(alias="spokenText")


class _Samples(ToolBox):
    """Makes tools of the methods that `TOOLS` names, with their schemas."""

    ID = "sample-tools"
    TOOLS: dict = {}

    def __init__(self, config=None, bus=None):
        super().__init__(self.ID, config, bus)

    def discover_tools(self) -> List[AgentTool]:
        return [
            AgentTool(name, f"Does {name}.", arguments, output, getattr(self, name))
            for name, (arguments, output) in self.TOOLS.items()
        ]

    def where(self, args):
        return {"answer": f"{self.config.get('key')} {self.bus}"}


class SampleTools(_Samples):
    TOOLS = {
        "add": (Pair, Whole), "prints": (Text, Answer), "raises": (Text, Answer), "nan": (Nothing, Value),
        "coroutine": (Nothing, Answer), "huge": (Pair, Answer), "exits": (Nothing, Answer), "aborts": (Nothing, Answer),
        "never": (Nothing, Answer), "forks": (Nothing, Answer), "spawns": (Nothing, Answer), "bad_output": (Nothing, Whole),
        "wrong_type": (Nothing, Answer), "surrogate": (Nothing, Answer), "leaves": (Nothing, Answer), "where": (Nothing, Answer),
        "stalls": (Nothing, Answer), "threads": (Nothing, Whole), "unset": (Unset, Answer), "split": (Split, Answer),
        "named": (Named, Spoken), "silent": (Nothing, Silent),
    }

    def add(self, args):
        return {"value": args.a + args.b}

    def prints(self, args):
        print(args.text)
        sys.__stdout__.write(args.text + "\n")
        os.write(1, args.text.encode() + b"\n")
        subprocess.run(["echo", args.text], check=True)
        return {"answer": args.text}

    def raises(self, args):
        raise LookupError(f"there is no {args.text}")

    def nan(self, args):
        return {"value": float("nan")}

    async def coroutine(self, args):
        return {"answer": "never awaited"}

    def huge(self, args):
        return {"answer": "x" * args.a}

    def exits(self, args):
        os._exit(3)

    def aborts(self, args):
        os.abort()

    def never(self, args):
        threading.Event().wait()

    def forks(self, args):
        if os.fork() == 0:
            time.sleep(0.2)
        return {"answer": "forked"}

    def spawns(self, args):
        # Lives on, as a daemon would.
        child = subprocess.Popen(["sleep", "5"], close_fds=False, start_new_session=True)
        return {"answer": str(child.pid)}

    def bad_output(self, args):
        return {"value": "no number"}

    def wrong_type(self, args):
        return "text"

    def surrogate(self, args):
        return {"answer": "\ud800"}

    def leaves(self, args):
        sys.exit("the tool wants to leave")

    def stalls(self, args):
        # One call into C that keeps Python's lock.
        return {"answer": str(sum(range(60_000_000)))}

    def threads(self, args):
        return {"value": threading.active_count()}

    def unset(self, args):
        return {"answer": repr(args.text)}

    def split(self, args):
        return {"answer": "+".join(args.words)}

    def named(self, args):
        return {"text": args.unit}

    def silent(self, args):
        return {"answer": None}


class LateTools(_Samples):
    ID = "late-tools"
    TOOLS = {"where": (Nothing, Answer)}
    tries = 0

    def discover_tools(self):
        LateTools.tries += 1
        # The constructor, `open`, and the first `tools` ask too early.
        if LateTools.tries < 4:
            raise ConnectionError("the server is not up yet")
        return super().discover_tools()


class OldTools(_Samples):
    TOOLS = {"where": (Nothing, Answer)}

    def __init__(self, toolbox_id, config=None, bus=None):
        ToolBox.__init__(self, toolbox_id, config, bus)


class PlainTools(_Samples):
    ID = "plain-tools"
    TOOLS = {"where": (Nothing, Answer)}

    def __init__(self):
        ToolBox.__init__(self, "plain-tools", {"key": "own"})


class ConfigTools(_Samples):
    ID = "config-tools"
    TOOLS = {"where": (Nothing, Answer)}

    def __init__(self, config):
        ToolBox.__init__(self, "config-tools", config)


class RenamedTools(_Samples):
    ID = "renamed_tools"
    TOOLS = {"where": (Nothing, Answer)}


class FailingTools(_Samples):
    def __init__(self, config=None, bus=None):
        raise RuntimeError("the key `token` is missing")


class BusTools(_Samples):
    ID = "bus-tools"
    TOOLS = {"asks": (Text, Answer), "says": (Text, Answer), "heard": (Nothing, Answer)}

    def __init__(self, config=None, bus=None):
        super().__init__(config, bus)
        self.last = None
        if self.bus is not None:
            self.bus.on("speak", self.on_speak)

    def on_speak(self, message):
        self.last = message.data["utterance"]

    def asks(self, args):
        answer = self.bus.wait_for_response(Message(args.text, {"n": 1}), timeout=1)
        return {"answer": None if answer is None else answer.data["level"]}

    def says(self, args):
        self.bus.emit(Message(args.text, {"n": 1}))
        return {"answer": "said"}

    def heard(self, args):
        return {"answer": self.last}
