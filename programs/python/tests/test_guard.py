"""The guard: a halt reaches the machine whatever the toolbox's code does, and nothing outlives the program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

from ovos_tools_program.testing import Failed, Harness

from .support import EXAMPLES, PROGRAMS, PYTHON, SAMPLES, ProgramTest, eventually, is_alive

#: What a halt may take on a busy machine, in seconds; the guard answers after 0.15 s.
SOON = 1.5


class Held(ProgramTest):
    def moving(self, tool: str, note: str, config=None, **params) -> Harness:
        box = self.awkward(config)
        self.run_ = box.start(tool, params, effect="motion", subsystems=["arm"])
        eventually(lambda: note in self.lines())
        return box

    def beat(self, box: Harness) -> float:
        began = time.monotonic()
        seq = box.driver.next_seq()
        box.send("beat", {"seq": seq})
        box.driver.wait(lambda one: one.name == "beat" and one.body["seq"] == seq, SOON)
        return time.monotonic() - began

    def test_a_call_into_c_that_keeps_the_lock(self) -> None:
        box = self.moving("keeps_the_lock", "locked")
        pids = [box.driver.process.pid, self.child_of(box)]
        for _ in range(3):
            self.assertLess(self.beat(box), SOON)
        began = time.monotonic()
        with self.assertRaisesRegex(Failed, "ToolboxCrashed: .*killed: it did not carry out a halt"):
            box.halt(emergency=True)
        self.assertLess(time.monotonic() - began, SOON)
        self.assertEqual(box.driver.end(5), 70)
        self.assertEqual(self.lines()[-1], "safe stop")
        self.assertFalse(any(is_alive(pid) for pid in pids))

    def test_a_loop_in_python(self) -> None:
        box = self.moving("loops", "looping", seconds=1.5)
        self.assertLess(self.beat(box), SOON)
        began = time.monotonic()
        box.halt(["arm"], seconds=SOON)
        self.assertLess(time.monotonic() - began, SOON)
        self.assertEqual(self.lines()[-1], "halt arm gentle")
        while not box.driver.named("ended"):
            self.beat(box)
            time.sleep(0.1)
        self.assertEqual(self.run_.wait()["end"], "cancelled")
        self.assertEqual(self.lines()[-2:], ["halt arm gentle"] * 2)

    def test_a_halt_that_hangs(self) -> None:
        box = self.moving("commands", "command", {"halt_hangs": True}, seconds=30)
        with self.assertRaisesRegex(Failed, "ToolboxCrashed"):
            box.halt(["arm"])
        self.assertEqual(box.driver.end(5), 70)
        self.assertEqual(self.lines()[-1], "safe stop")

    def test_a_process_that_answers_nothing_is_killed(self) -> None:
        code = "import ovos_tools_program.guard as guard, awkward; guard.HANGS = 1.0; awkward.Awkward.run()"
        driver = self.start(PYTHON, "-c", code)
        box = Harness.of_driver(driver, None, {"journal": str(self.journal)})
        box.start("keeps_the_lock", effect="read")
        eventually(lambda: "locked" in self.lines())
        began = time.monotonic()
        while driver.process.poll() is None and time.monotonic() - began < 5:
            try:
                self.beat(box)
            except (AssertionError, OSError):
                break
            time.sleep(0.1)
        self.assertEqual(driver.end(5), 70)
        self.assertGreater(time.monotonic() - began, 1)
        self.assertEqual(self.lines()[-1], "safe stop")

    def child_of(self, box: Harness) -> int:
        guard = box.driver.process.pid
        with open(f"/proc/{guard}/task/{guard}/children", encoding="ascii") as file:
            return int(file.read().split()[0])

    # --- the service is gone

    def test_either_socket_ends_while_something_moves(self) -> None:
        for lane in ("data", "control"):
            with self.subTest(lane):
                self.journal.unlink(missing_ok=True)
                box = self.moving("commands", "command", seconds=30)
                box.driver.hang_up([lane])
                self.assertEqual(box.driver.end(2.5), 0)
                lines = self.lines()
                self.assertIn("halt all emergency", lines)
                self.assertNotIn("command", lines[lines.index("refused") :])
                self.assertEqual(lines[-1], "close")
                if lane == "control":
                    self.assertIn("the control socket ended", box.events("latched")[0]["reason"])

    def test_the_service_is_silent_while_something_moves(self) -> None:
        box = self.moving("commands", "command", seconds=30)
        eventually(lambda: box.events("latched"))
        self.assertIn("500 ms", box.events("latched")[0]["reason"])
        self.assertEqual(box.driver.end(3), 0)
        self.assertEqual(self.lines()[-1], "close")

    def test_beats_keep_it_moving(self) -> None:
        box = self.moving("commands", "command", seconds=1.2)
        for _ in range(10):
            self.beat(box)
            time.sleep(0.1)
        self.assertIn("output", self.run_.wait()["end"])
        self.assertEqual(box.events("latched"), [])
        box.close()

    def test_a_silent_service_when_nothing_moves(self) -> None:
        with self.awkward() as box:
            time.sleep(0.8)
            self.assertIn("output", box.start("identity").wait()["end"])

    def test_sigterm(self) -> None:
        box = self.moving("commands", "command", seconds=30)
        box.driver.process.send_signal(signal.SIGTERM)
        self.assertEqual(box.driver.end(2.5), 0)
        self.assertIn("halt all emergency", self.lines())

    def test_a_service_that_dies_while_a_call_keeps_the_lock(self) -> None:
        box = self.moving("keeps_the_lock", "locked")
        child = self.child_of(box)
        began = time.monotonic()
        box.driver.hang_up()
        box.driver.end(3)
        self.assertLess(time.monotonic() - began, 2.5)
        self.assertEqual(self.lines()[-1], "safe stop")
        self.assertFalse(is_alive(child))

    def test_a_toolbox_that_dies_as_it_is_halted(self) -> None:
        box = self.moving("commands", "command", {"halt_exits": True}, seconds=30)
        box.driver.hang_up()
        self.assertEqual(box.driver.end(3), 70)
        self.assertEqual(self.lines()[-1], "safe stop")

    # --- processes end with each other

    def test_the_toolbox_dies_with_its_guard(self) -> None:
        box = self.moving("keeps_the_lock", "locked")
        child = self.child_of(box)
        box.driver.process.kill()
        box.driver.end()
        eventually(lambda: not is_alive(child), 2)

    def test_the_guard_ends_as_the_toolbox_did(self) -> None:
        for tool, status in (("exits", 3), ("aborts", -signal.SIGABRT)):
            with self.subTest(tool):
                box = self.awkward()
                box.start(tool)
                self.assertEqual(box.driver.end(3), status)

    def test_a_process_that_a_tool_starts_holds_no_socket(self) -> None:
        box = self.awkward()
        pid = box.start("spawns").result()["result"]
        try:
            box.close()
            eventually(lambda: box.driver._ended == 2, 2)
            self.assertTrue(is_alive(pid))
        finally:
            os.kill(pid, signal.SIGKILL)

    def test_a_process_that_a_tool_forks_ends_by_sigterm(self) -> None:
        with self.awkward() as box:
            self.assertEqual(box.start("terminates").result(), {"result": -signal.SIGTERM})

    def test_nothing_but_the_hello_before_open(self) -> None:
        driver = self.start(PYTHON, SAMPLES / "awkward.py")
        driver.wait(lambda one: one.name == "hello")
        time.sleep(0.2)
        with open(f"/proc/{driver.process.pid}/task/{driver.process.pid}/children", encoding="ascii") as file:
            self.assertEqual(file.read(), "")
        driver.hang_up()
        self.assertEqual(driver.end(3), 0)
        self.assertEqual(self.lines(), [])

    def test_safe_stop(self) -> None:
        config = json.dumps({"journal": str(self.journal)})
        rows = [
            (EXAMPLES / "mover.py", config, 0, ""),
            (EXAMPLES / "greeter.py", config, 0, ""),
            (SAMPLES / "awkward.py", "{}", 1, "safe stop failed: KeyError"),
        ]
        for program, stdin, status, said in rows:
            with self.subTest(program.name):
                ended = subprocess.run(
                    [PYTHON, program, "--safe-stop"], input=stdin, capture_output=True, text=True, timeout=5, check=False,
                    env={**os.environ, "PYTHONPATH": str(PROGRAMS)},
                )
                self.assertEqual(ended.returncode, status, ended.stderr)
                self.assertIn(said, ended.stderr)
        self.assertTrue(self.lines()[0].endswith("safe stop"))
