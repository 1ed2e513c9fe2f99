"""A toolbox of the author's module that misbehaves. `journal` in its configuration names a file for what reaches the machine."""

import enum
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, TypedDict, Union

from ovos_tools_program import Context, Toolbox, ToolError, tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: float
    y: float = 0.0


class Options(TypedDict, total=False):
    deep: List[Point]


@dataclass
class Echo:
    colour: Colour
    point: Optional[Point]
    options: Dict[str, Any] = field(default_factory=dict)


class Awkward(Toolbox):
    """Misbehaves."""

    id = "awkward"
    subscribes = ("speak",)
    requests = ("battery.level",)

    def open(self, config: Dict[str, Any]) -> None:
        if config.get("refuse"):
            raise ToolError("HardwareError", "no machine on this port; connect it and reload")
        self.config = config
        self.heard: List[str] = []
        self.resuming = threading.Event()
        self.may_resume = threading.Event()
        self.note("open")

    def note(self, text: str) -> None:
        with open(self.config["journal"], "a") as file:
            file.write(text + "\n")

    def halt(self, subsystems: List[str], emergency: bool) -> None:
        self.note(f"halt {'+'.join(subsystems)} {'emergency' if emergency else 'gentle'}")
        if self.config.get("halt_hangs"):
            time.sleep(30)
        if self.config.get("halt_exits"):
            os._exit(5)
        if self.config.get("halt_fails"):
            raise ToolError("HardwareError", "the arm does not answer")
        if not emergency and self.config.get("gentle_takes"):
            time.sleep(self.config["gentle_takes"])

    def resume(self) -> None:
        self.resuming.set()
        self.may_resume.wait(self.config.get("resume_takes", 0))

    @classmethod
    def safe_stop(cls, config: Dict[str, Any]) -> None:
        with open(config["journal"], "a") as file:
            file.write("safe stop\n")

    def message(self, topic: str, data: Dict[str, Any]) -> None:
        self.heard.append(data["utterance"])

    def may_close(self) -> None:
        if self.heard:
            raise ToolError("BusyError", "it listens")

    def close(self) -> None:
        self.note("close")

    @tool("read")
    def echo(
        self, colour: Colour, point: Optional[Point] = None, options: Optional[Options] = None,
        either: Union[int, List[str]] = 1,
    ) -> Echo:
        """Returns what it was given.

        Args:
            colour: One of two.
            either: A number, or
                a list.
        """
        return Echo(colour, point, {"either": either, "deep": (options or {}).get("deep", [])})

    @tool("read")
    def identity(self) -> Dict[str, int]:
        return {"pid": os.getpid(), "parent": os.getppid()}

    @tool("read")
    def heard_messages(self) -> List[str]:
        return self.heard

    @tool("read")
    def battery(self, context: Context) -> Any:
        return context.request("battery.level", {"unit": "%"}, timeout=2)

    @tool("read")
    def unknown_topic(self, context: Context) -> Any:
        return context.request("other.topic")

    @tool("write")
    def logs(self, count: int) -> None:
        for number in range(count):
            logging.getLogger("serial").warning("line %d", number)

    @tool("write")
    def pictures(self, context: Context) -> int:
        context.show("image", "image/png", b"png", "The front")
        return 1

    @tool("write")
    def huge(self, size: int) -> str:
        return "x" * size

    @tool("write")
    def waits(self, context: Context, seconds: float) -> None:
        context.wait(seconds)

    @tool("write")
    def sleeps(self, seconds: float) -> None:
        time.sleep(seconds)

    @tool("write")
    def exits(self) -> None:
        os._exit(3)

    @tool("write")
    def aborts(self) -> None:
        os.abort()

    @tool("write")
    def spawns(self) -> int:
        return subprocess.Popen(["sleep", "5"], close_fds=False, start_new_session=True).pid

    @tool("write")
    def terminates(self) -> Optional[int]:
        """Forks a process and ends it by SIGTERM."""
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(30,))
        process.start()
        process.terminate()
        process.join(5)
        return process.exitcode

    @tool("motion", subsystems=["arm"])
    def keeps_the_lock(self) -> int:
        """One call into C that lets no other thread of the process run, for half a minute."""
        self.note("locked")
        return sum(range(2_000_000_000))

    @tool("motion", subsystems=["arm"])
    def loops(self, seconds: float) -> None:
        """Python code that never looks whether it is halted."""
        self.note("looping")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass

    @tool("motion", subsystems=["arm"])
    def commands(self, context: Context, seconds: float) -> None:
        """Sends commands through the gate, and ignores that it was cancelled."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                context.command(lambda: self.note("command"))
            except BaseException:
                self.note("refused")
                return
            time.sleep(0.01)

    @tool("motion", subsystems=["arm"])
    def long_command(self, context: Context) -> None:
        """Is inside one command when the halt comes."""

        def send() -> None:
            self.note("command begins")
            time.sleep(0.4)
            self.note("command ends")

        context.command(send)


if __name__ == "__main__":
    Awkward.run()
    sys.exit("run returned")
