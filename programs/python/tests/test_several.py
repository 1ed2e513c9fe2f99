"""A program of several toolboxes, served by threads of this process."""

from __future__ import annotations

import socket
import threading
import time
import unittest
from typing import Any, Dict, List
from unittest import mock

from ovos_tools_program.box import Box
from ovos_tools_program.program import Program
from ovos_tools_program.testing import Driver

from .support import eventually


class Plain(Box):
    """Opens unless it is called `refuses`, and halts unless it is called `hangs`."""

    def __init__(self, toolbox: str) -> None:
        self.manifest = {"id": toolbox}
        self.released = threading.Event()

    def open(self, config: Dict[str, Any], host: Any) -> None:
        if self.manifest["id"] == "refuses":
            raise RuntimeError("no luck")

    def tools(self) -> List[Dict[str, Any]]:
        return []

    def halt(self, subsystems: List[str], emergency: bool) -> None:
        if self.manifest["id"] == "hangs":
            self.released.wait(5)


class Vanishing(Dict[str, Any]):
    """Loses what it was just asked for, as if another thread had closed it."""

    def __contains__(self, key: object) -> bool:
        found = super().__contains__(key)
        self.pop(str(key), None)
        return found


class Several(unittest.TestCase):
    def setUp(self) -> None:
        pairs = socket.socketpair(), socket.socketpair()
        self.driver = Driver(pairs[0][0], pairs[1][0])
        self.boxes: List[Plain] = []
        self.program = Program(self.make, None, pairs[0][1], pairs[1][1], guarded=False, end=lambda _: None)
        self.addCleanup(self.end)
        threading.Thread(target=self.program.serve, daemon=True).start()

    def end(self) -> None:
        for box in self.boxes:
            box.released.set()
        self.driver.hang_up()

    def make(self, toolbox: str) -> Plain:
        self.boxes.append(Plain(toolbox))
        return self.boxes[-1]

    def ask(self, name: str, notice: str, toolbox: str | None = None, **body: Any) -> Any:
        seq = self.driver.next_seq()
        self.driver.send(name, {"seq": seq, **body}, toolbox)
        return self.driver.wait(lambda one: one.name == notice and one.body["seq"] == seq).body

    def open(self, *toolboxes: str) -> None:
        for toolbox in toolboxes:
            self.ask("open", "opened", toolbox, config={}, stop_epoch=0, close_ms=2000)

    def halt(self, *toolboxes: str) -> Any:
        body = {"toolboxes": list(toolboxes), "subsystems": ["all"], "emergency": True, "stop_epoch": 0}
        return self.ask("halt", "halted", **body)["answer"]

    def test_a_toolbox_that_is_closed_leaves_no_thread(self) -> None:
        def threads() -> int:
            return sum(one.name.startswith("box-") for one in threading.enumerate())

        before = threads()
        for _ in range(10):
            for toolbox in ("clock", "refuses"):
                self.open(toolbox)
                self.assertTrue(self.ask("close", "closed", toolbox)["in_time"])
        eventually(lambda: threads() <= before)

    def test_a_halt_that_meets_a_close_is_answered(self) -> None:
        self.open("clock", "files")
        self.program._served = Vanishing(self.program._served)
        self.assertEqual(self.halt("clock", "files"), {"ok": None})

    def test_one_that_hangs_is_told_within_its_time(self) -> None:
        self.open("clock", "hangs")
        begun = time.monotonic()
        missed = self.halt("clock", "hangs")["error"]["data"]["toolboxes"]
        self.assertEqual(missed, {"hangs": "it did not halt within 1.5 s"})
        self.assertLess(time.monotonic() - begun, 1.9)

    def test_halts_are_passed_on_and_answered_where_no_thread_can_be_had(self) -> None:
        self.open("clock", "files")
        with mock.patch("threading.Thread.start", side_effect=RuntimeError("can't start new thread")):
            missed = self.halt("clock", "files")["error"]["data"]["toolboxes"]
        self.assertEqual(sorted(missed), ["clock", "files"])
        self.assertEqual(self.halt("clock", "files"), {"ok": None})


