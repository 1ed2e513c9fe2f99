"""The author's module: a toolbox in a process of its own, driven through its two sockets."""

from __future__ import annotations

import os
import threading
import time
import unittest

from ovos_tools_program.testing import Failed, Harness

from examples.greeter import Greeter
from examples.mover import Mover

from .support import EXAMPLES, PROGRAMS, PYTHON, ProgramTest, eventually


class Examples(ProgramTest):
    def test_the_greeter(self) -> None:
        with Harness.of_driver(self.start(PYTHON, EXAMPLES / "greeter.py"), None) as greeter:
            self.assertEqual(greeter.hello["toolboxes"][0]["id"], "greeter")
            tools = greeter.tools()
            self.assertEqual(tools["greet"]["argument_schema"]["required"], ["name"])
            self.assertEqual(greeter.call("greet", {"name": "Ada", "language": "de"})["text"], "Hallo, Ada!")
            run = greeter.start("count", {"to": 3, "pause": 0.01})
            self.assertEqual(run.result(), {"result": 3})
            self.assertEqual([one["message"] for one in run.progress()], ["1 of 3", "2 of 3", "3 of 3"])
            asleep = greeter.start("count", {"to": 2, "pause": 60})
            asleep.cancel()
            self.assertEqual(asleep.wait(2)["end"], "cancelled")

    def test_both_in_this_process(self) -> None:
        with Harness(Greeter) as greeter:
            self.assertEqual(greeter.call("count", {"to": 2, "pause": None}), {"result": 2})
        with Harness(Mover) as mover:
            self.assertEqual(mover.call("move", {"angle": 5})["angle"], 5)
            mover.halt(emergency=True)
            mover.resume()

    def test_the_mover(self) -> None:
        driver = self.start(PYTHON, EXAMPLES / "mover.py")
        with Harness.of_driver(driver, None, {"journal": str(self.journal)}) as mover:
            self.assertEqual(mover.events("backend")[0]["simulated"], True)
            self.assertEqual(mover.call("move", {"angle": 3}), {"angle": 3.0, "simulated": True})
            self.assertEqual(mover.call("wave", {"times": 1})["angle"], 0)
            run = mover.start("move", {"angle": 90}, effect="motion", subsystems=["joint"])
            eventually(lambda: run.progress())
            mover.halt(["joint"])
            self.assertEqual(run.wait()["end"], "cancelled")
            at = mover.call("where")["angle"]
            mover.halt(emergency=True)
            mover.halt(["joint"])
            mover.resume()
            self.assertEqual(mover.call("where")["angle"], at)
        self.assertEqual([line.split()[1] for line in self.lines()[-2:]], ["hold", "torque"])


class Answers(ProgramTest):
    def test_typed_arguments_and_descriptions(self) -> None:
        with self.awkward() as box:
            schema = box.tools()["echo"]["argument_schema"]
            self.assertEqual(schema["properties"]["colour"], {"enum": ["red", "blue"], "description": "One of two."})
            self.assertEqual(schema["properties"]["either"]["description"], "A number, or a list.")
            args = {"colour": "blue", "point": {"x": 1}, "options": {"deep": [{"x": 2, "y": 3}]}, "either": ["a"]}
            deep = [{"x": 2.0, "y": 3.0}]
            want = {"colour": "blue", "point": {"x": 1.0, "y": 0.0}, "options": {"either": ["a"], "deep": deep}}
            self.assertEqual(box.call("echo", args), want)
            for args, problem in (({}, "argument `colour` is missing"), ({"colour": "green"}, "expected one of")):
                with self.assertRaisesRegex(Failed, f"ValueError: .*{problem}"):
                    box.start("echo", args).result()

    def test_an_open_that_refuses(self) -> None:
        with self.assertRaisesRegex(Failed, "HardwareError: no machine on this port"):
            self.awkward({"refuse": True})

    def test_a_result_that_is_too_large(self) -> None:
        with self.awkward(max_result_bytes=1000) as box:
            self.assertEqual(len(box.start("huge", {"size": 500}).result()["result"]), 500)
            with self.assertRaisesRegex(Failed, "at most 1000 are allowed"):
                box.start("huge", {"size": 2000}).result()

    def test_questions_to_the_bus(self) -> None:
        with self.awkward() as box:
            box.driver.answers["battery.level"] = lambda data: {"level": 80, "unit": data["unit"]}
            self.assertEqual(box.start("battery").result(), {"result": {"level": 80, "unit": "%"}})
            with self.assertRaisesRegex(Failed, "PermissionError"):
                box.start("unknown_topic").result()

    def test_messages_of_the_bus_and_a_refused_reload(self) -> None:
        with self.awkward() as box:
            self.assertIsNone(box.ask("may_close", "closable"))
            box.send("message", {"topic": "speak", "data": {"utterance": "hello"}})
            with self.assertRaisesRegex(Failed, "BusyError: it listens"):
                box.ask("may_close", "closable")
            self.assertEqual(box.start("heard_messages").result(), {"result": ["hello"]})

    def test_logs_are_forwarded_and_a_flood_is_counted(self) -> None:
        with self.awkward() as box:
            box.start("logs", {"count": 2000}).result()
            box.start("identity").result()
            logs = box.driver.named("log")
            self.assertEqual(logs[0], {"level": 2, "target": "serial", "message": "line 0"})
            self.assertEqual(len(logs) + box.driver.named("counts")[-1]["dropped_logs"], 2000)
            self.assertGreaterEqual(len(logs), 1000)

    def test_pictures_travel_beside_the_result(self) -> None:
        content = self.folder / "content"
        content.mkdir()
        with self.awkward() as box:
            self.assertNotIn("content", box.start("pictures").wait())
            shown = box.start("pictures", content_dir=str(content)).wait()["content"]
            self.assertEqual((content / shown[0]["path"]).read_bytes(), b"png")
            self.assertEqual(shown[0]["title"], "The front")

    def test_two_hundred_calls_at_once(self) -> None:
        with self.awkward() as box:
            runs = [box.start("waits", {"seconds": 0.05}) for _ in range(200)]
            self.assertEqual([run.result() for run in runs], [{}] * 200)


class Cancelling(ProgramTest):
    def test_a_cancel_in_every_moment(self) -> None:
        with self.awkward() as box:
            run = box.start("waits", {"seconds": 60})
            run.cancel()
            run.cancel()
            self.assertEqual(run.wait(2)["end"], "cancelled")
            # It overtakes its start.
            box.send("cancel", {"run": box.starts + 1, "starts": box.starts + 1})
            box.ask("resume", "resumed")  # the control lane has taken the cancel
            self.assertEqual(box.start("identity").wait()["end"], "cancelled")
            self.assertIn("output", box.start("identity").wait()["end"])

    def test_what_waits_for_a_thread(self) -> None:
        with self.awkward(max_queued=2) as box:
            running = [box.start("waits", {"seconds": 60}) for _ in range(64)]
            # A start leaves the queue when its thread has begun.
            time.sleep(0.3)
            queued = [box.start("waits", {"seconds": 60}) for _ in range(2)]
            with self.assertRaisesRegex(Failed, "BusyError: 2 starts wait already"):
                box.start("identity").result()
            box.send("give_up", {"run": queued[0].number, "starts": box.starts})
            self.assertEqual(queued[0].wait(2)["end"], "cancelled")
            box.send("give_up", {"run": running[0].number, "starts": box.starts})
            for run in [*running, queued[1]]:
                run.cancel()
            for run in [*running, queued[1]]:
                self.assertEqual(run.wait()["end"], "cancelled")

    def test_a_start_from_before_a_stop_never_begins(self) -> None:
        with self.awkward() as box:
            box.send("epoch", {"stop_epoch": 3})
            box.ask("resume", "resumed")
            self.assertEqual(box.start("identity").wait()["end"], "cancelled")
            box.epoch = 3
            self.assertIn("output", box.start("identity").wait()["end"])
            self.assertEqual(box.driver.named("counts")[-1]["stale_starts"], 1)

    def test_close_waits_for_what_is_under_way(self) -> None:
        box = self.awkward()
        run = box.start("sleeps", {"seconds": 0.3})
        box.ask("may_close", "closable")
        self.assertTrue(box.close())
        self.assertEqual(run.wait()["end"], {"output": {}})
        self.assertEqual(self.lines(), ["open", "close"])

    def test_close_gives_up_what_takes_too_long(self) -> None:
        box = self.awkward(close_ms=1300)
        run = box.start("sleeps", {"seconds": 60})
        box.ask("may_close", "closable")
        began = time.monotonic()
        self.assertFalse(box.close())
        self.assertLess(time.monotonic() - began, 1.3)
        self.assertEqual(run.wait()["end"]["lost"]["kind"], "ToolboxClosed")


class Halting(ProgramTest):
    def test_no_command_follows_a_halt(self) -> None:
        with self.awkward() as box:
            run = box.start("commands", {"seconds": 30}, effect="motion", subsystems=["arm"])
            eventually(lambda: "command" in self.lines())
            box.halt(["arm"])
            self.assertEqual(run.wait()["end"], "cancelled")
            lines = self.lines()
            halt = lines.index("halt arm gentle")
            self.assertNotIn("command", lines[halt:])
            self.assertIn("refused", lines)

    def test_a_command_that_was_under_way_is_halted_again(self) -> None:
        with self.awkward() as box:
            run = box.start("long_command", effect="motion", subsystems=["arm"])
            eventually(lambda: "command begins" in self.lines())
            box.halt(["arm"], seconds=1)
            self.assertEqual(run.wait()["end"], "cancelled")
            lines = self.lines()
            self.assertIn("halt arm gentle", lines[: lines.index("command ends")])
            self.assertIn("halt arm gentle", lines[lines.index("command ends") :])

    def test_other_subsystems_and_other_effects_go_on(self) -> None:
        with self.awkward() as box:
            run = box.start("commands", {"seconds": 0.3}, effect="motion", subsystems=["arm"])
            other = box.start("waits", {"seconds": 0.3}, effect="write")
            box.halt(["leg"])
            self.assertIn("output", run.wait()["end"])
            self.assertIn("output", other.wait()["end"])

    def test_a_halt_that_fails_says_what_was_not_reached(self) -> None:
        with self.awkward({"halt_fails": True}) as box, self.assertRaisesRegex(Failed, "HardwareError: the arm"):
            box.halt()

    def test_a_stop_overtakes_a_resume(self) -> None:
        with self.awkward({"resume_takes": 0.4}) as box:
            box.halt(emergency=True)
            errors = []
            thread = threading.Thread(target=lambda: errors.append(self.failure_of(box.resume)))
            thread.start()
            time.sleep(0.15)
            box.halt(emergency=True)
            thread.join()
            self.assertEqual(errors[0]["kind"], "EmergencyStop")
            self.assertEqual(self.lines().count("halt all emergency"), 3)

    def failure_of(self, work) -> dict:
        try:
            work()
        except Failed as failed:
            return failed.failure
        return {}


class Unstarted(unittest.TestCase):
    def test_a_program_that_a_person_starts_says_what_it_is(self) -> None:
        import subprocess

        ended = subprocess.run(
            [PYTHON, EXAMPLES / "greeter.py"], capture_output=True, text=True, timeout=20, check=False,
            env={**os.environ, "PYTHONPATH": str(PROGRAMS)},
        )
        self.assertEqual(ended.returncode, 1)
        self.assertIn("service.programs", ended.stderr)
