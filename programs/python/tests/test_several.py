"""A program of several toolboxes, served by threads of this process."""

from __future__ import annotations

import socket
import threading
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

    def halt(self, toolbox: str) -> Any:
        body = {"subsystems": ["all"], "emergency": True, "stop_epoch": 1}
        return self.ask("halt", "halted", toolbox, **body)["answer"]

    def test_a_toolbox_that_is_closed_leaves_no_thread(self) -> None:
        def threads() -> int:
            return sum(one.name.startswith("box-") for one in threading.enumerate())

        before = threads()
        for _ in range(10):
            for toolbox in ("clock", "refuses"):
                self.open(toolbox)
                self.assertTrue(self.ask("close", "closed", toolbox)["in_time"])
        eventually(lambda: threads() <= before)

    def test_one_that_hangs_delays_the_halt_of_no_other(self) -> None:
        self.open("clock", "hangs")
        for toolbox in ("hangs", "clock"):
            self.driver.send("halt", {"seq": 0, "subsystems": ["all"], "emergency": True, "stop_epoch": 1}, toolbox)
        self.driver.wait(lambda one: one.name == "halted" and one.toolbox == "clock")
        self.assertEqual(self.driver.named("halted", "hangs"), [])

    def test_halts_are_passed_on_and_answered_where_no_thread_can_be_had(self) -> None:
        self.open("clock", "files")
        with mock.patch("threading.Thread.start", side_effect=RuntimeError("can't start new thread")):
            missed = [self.halt(toolbox) for toolbox in ("clock", "files")]
        self.assertEqual([one["error"]["message"] for one in missed], 2 * ["can't start new thread"])
        self.assertEqual([self.halt(toolbox) for toolbox in ("clock", "files")], 2 * [{"ok": None}])
