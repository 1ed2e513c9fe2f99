"""OPM toolboxes that misbehave, each in a program of its own: `--alone`."""

from __future__ import annotations

import os
import signal
import sys
import time

from ovos_tools_program.testing import Failed, Harness

from .support import HOST, ProgramTest, eventually, is_alive

IN = "for '{}' in ToolBox 'sample-tools'"
#: Tool, arguments, kind and message of the failure, the text of the reference.
FAILURES = [
    (
        "raises", {"text": "moon"}, "RuntimeError", f"Tool execution failed {IN}: LookupError: there is no moon",
        f"RuntimeError: Tool execution failed {IN}",
    ),
    (
        "add", {"a": "one"}, "ValueError",
        f"Tool input validation failed {IN}: 'a': Input should be a valid integer, unable to parse string as an integer",
        f"ValueError: Tool input validation failed {IN}",
    ),
    (
        "bad_output", {}, "RuntimeError",
        f"Tool output validation failed {IN}: 'value': Input should be a valid integer, unable to parse string as an integer",
        f"RuntimeError: Tool output validation failed {IN}",
    ),
    (
        "coroutine", {}, "RuntimeError",
        "Tool 'coroutine' returned an unexpected type: coroutine. Must return Dict[str, Any] or ToolOutput.", None,
    ),
    (
        "wrong_type", {}, "RuntimeError",
        "Tool 'wrong_type' returned an unexpected type: str. Must return Dict[str, Any] or ToolOutput.", None,
    ),
    ("absent", {}, "ValueError", "Unknown tool 'absent' for ToolBox 'sample-tools'.", None),
    ("nan", {}, "ValueError", "Out of range float values are not JSON compliant", None),
    ("leaves", {}, "SystemExit", "the tool wants to leave", None),
]


class Samples(ProgramTest):
    def test_failures_have_the_texts_of_the_reference_and_a_reason(self) -> None:
        with self.alone("sample-tools") as box:
            for tool, args, kind, message, reference in FAILURES:
                with self.subTest(tool):
                    error = box.start(tool, args).wait()["end"]["error"]
                    self.assertEqual((error["kind"], error["message"]), (kind, message.format(tool)))
                    if reference is not None:
                        self.assertEqual(error["data"]["error"], reference.format(tool))
            self.assertEqual(box.start("surrogate", {}).wait()["end"]["error"]["kind"], "UnicodeEncodeError")

    def test_arguments_are_converted_by_pydantic(self) -> None:
        with self.alone("sample-tools") as box:
            for args, value in (
                ({"a": "1", "b": " 2 "}, 3), ({"a": 2.0}, 3), ({"a": True, "other": 1}, 2), ({"a": 10**30, "b": 1}, 10**30 + 1),
            ):
                self.assertEqual(box.start("add", args).result(), {"value": value})

    def test_what_is_printed_goes_to_standard_error(self) -> None:
        with self.alone("sample-tools") as box:
            self.assertEqual(box.start("prints", {"text": "printed"}).result(), {"answer": "printed"})
        self.assertEqual(self.stderr().splitlines().count("printed"), 4)
        self.assertIn("printed to standard output by an import", self.stderr())

    def test_twenty_megabytes_are_too_much(self) -> None:
        with self.alone("sample-tools") as box:
            with self.assertRaisesRegex(Failed, "at most 8388608 are allowed"):
                box.start("huge", {"a": 20 << 20}).result()
            self.assertEqual(len(box.start("huge", {"a": 8 << 20 >> 1}).result()["answer"]), 4 << 20)

    def test_a_tool_that_ends_the_process(self) -> None:
        for tool, status in (("exits", 3), ("aborts", -signal.SIGABRT)):
            with self.subTest(tool):
                box = self.alone("sample-tools")
                self.assertEqual(box.start("add", {"a": 1}).result(), {"value": 2})
                box.start(tool, {})
                self.assertEqual(box.driver.end(5), status)

    def test_calls_that_never_end_are_answered_and_the_program_is_replaced(self) -> None:
        box = self.alone("sample-tools")
        for _ in range(8):
            run = box.start("never", {})
            eventually(lambda: box.start("add", {"a": 1}).result())
            run.cancel()
            self.assertEqual(run.wait(2)["end"], "cancelled")
        self.assertEqual(box.driver.end(8), 75)
        self.assertIn("the program ends to be replaced: 8 cancelled calls of `sample-tools` never ended", self.stderr())

    def test_a_tool_that_forks_answers_once(self) -> None:
        box = self.alone("sample-tools")
        run = box.start("forks", {})
        self.assertEqual(run.result(), {"answer": "forked"})
        time.sleep(0.5)
        self.assertEqual([one["run"] for one in box.driver.named("ended")], [run.number])
        self.assertEqual(box.start("add", {"a": 1}).result(), {"value": 2})
        pid = int(box.start("spawns", {}).result()["answer"])
        try:
            self.assertTrue(box.close())
            eventually(lambda: box.driver._ended == 2, 2)
            self.assertTrue(is_alive(pid))
        finally:
            os.kill(pid, signal.SIGKILL)

    def test_beats_are_answered_while_a_tool_keeps_the_lock(self) -> None:
        with self.alone("sample-tools") as box:
            run = box.start("stalls", {})
            for seq in range(100, 103):
                box.send("beat", {"seq": seq})
                box.driver.wait(lambda one, seq=seq: one.name == "beat" and one.body["seq"] == seq, 1.5)
            self.assertIn("output", run.wait(30)["end"])

    def test_the_program_ends_with_the_service(self) -> None:
        box = self.alone("sample-tools")
        box.start("never", {})
        box.driver.hang_up()
        self.assertEqual(box.driver.end(3), 0)


class Importing(ProgramTest):
    def test_one_that_hangs_while_it_is_imported_does_not_keep_the_others_closed(self) -> None:
        driver = self.start(sys.executable, HOST, "--only", "hanging-tools", "--only", "sample-tools")
        driver.wait(lambda one: one.name == "hello")
        for toolbox in ("hanging-tools", "sample-tools"):
            driver.send("open", {"seq": 0, "config": {}, "stop_epoch": 0, "close_ms": 2000}, toolbox)
        opened = driver.wait(lambda one: one.name == "opened", 20)
        self.assertEqual((opened.toolbox, list(opened.body["answer"])), ("sample-tools", ["ok"]))


class Constructing(ProgramTest):
    def test_each_shape_of_constructor(self) -> None:
        rows = [
            ("sample-tools", {"key": "k"}, "k None"), ("config-tools", {"key": "k"}, "k None"),
            ("old-tools", {"key": "k"}, "k None"), ("plain-tools", {"key": "k"}, "own None"),
        ]
        for entry_point, config, answer in rows:
            with self.subTest(entry_point), self.alone(entry_point, config) as box:
                self.assertEqual(box.start("where", {}).result(), {"answer": answer})

    def test_what_cannot_be_opened_says_why(self) -> None:
        rows = [
            ("absent-tools", "ImportError: opm_samples_that_are_not_there:Tools cannot be imported: ModuleNotFoundError"),
            ("failing-tools", "ToolboxError: .* cannot be constructed: RuntimeError: the key `token` is missing"),
        ]
        for entry_point, problem in rows:
            with self.subTest(entry_point), self.assertRaisesRegex(Failed, problem):
                self.alone(entry_point)

    def test_a_discovery_that_fails_first_is_repeated(self) -> None:
        with self.alone("late-tools") as box:
            self.assertEqual(box.tools(), {})
            box.driver.wait(lambda one: one.name == "event" and one.body["kind"] == "tools_changed", 5)
            self.assertEqual(list(box.tools()), ["where"])

    def test_effects(self) -> None:
        effects = {"add": "read", "prints": "motion"}
        with self.alone("sample-tools", {"effects": effects}) as box:
            tools = box.tools()
            said = {name: tools[name]["effect"] for name in ("add", "prints", "nan")}
            self.assertEqual(said, {"add": "read", "prints": "write", "nan": "write"})

    def test_an_id_of_its_own(self) -> None:
        with self.alone("renamed-entry", None, "--id", "renamed_tools") as box:
            self.assertEqual(box.hello["toolboxes"][0]["id"], "renamed_tools")
            self.assertEqual(box.driver.named("log"), [])
        with self.alone("renamed-entry") as box:
            self.assertIn("calls itself `renamed_tools`", box.driver.named("log")[0]["message"])

    def test_a_stop_before_open_holds_after_it(self) -> None:
        driver = self.start(sys.executable, HOST)
        driver.send("epoch", {"stop_epoch": 5}, "sample-tools")
        driver.send("beat", {"seq": 1})
        driver.wait(lambda one: one.name == "beat")
        box = Harness.of_driver(driver, "sample-tools", {})
        self.assertEqual(box.start("add", {"a": 1}).wait()["end"], "cancelled")
        box.epoch = 5
        self.assertEqual(box.start("add", {"a": 1}).result(), {"value": 2})

    def test_one_of_several_with_an_id_of_its_own_is_served_under_its_entry_point(self) -> None:
        driver = self.start(sys.executable, HOST)
        hello = driver.wait(lambda one: one.name == "hello").body
        offered = {one["id"] for one in hello["toolboxes"]}
        self.assertIn("renamed-entry", offered)
        self.assertNotIn("Bad.Name", offered)
        box = Harness.of_driver(driver, "renamed-entry", {"key": "entry"})
        self.assertEqual(box.start("where", {}).result(), {"answer": "entry None"})
        self.assertIn("it is served as `renamed-entry`", driver.named("log")[0]["message"])
        box.close()
        driver.send("close", {"seq": 3})
        self.assertEqual(driver.end(5), 0)


class Bus(ProgramTest):
    def test_a_proxy_asks_says_and_hears(self) -> None:
        more = ["--request", "battery.level", "--subscribe", "speak"]
        with self.alone("bus-tools", {"bus": "proxy"}, *more) as box:
            manifest = box.hello["toolboxes"][0]
            self.assertEqual((manifest["requests"], manifest["subscribes"]), (["battery.level"], ["speak"]))
            box.driver.answers["battery.level"] = lambda data: {"level": str(data["n"])}
            self.assertEqual(box.start("asks", {"text": "battery.level"}).result(), {"answer": "1"})
            for swallowed in ("other.topic", "ovos.tools.list"):
                self.assertEqual(box.start("asks", {"text": swallowed}).result(), {"answer": None})
            for topic in ("lamp.on", "ovos.tools.invoke", "ovos.persona.tools.call", "ovos.stop", "mycroft.stop"):
                box.start("says", {"text": topic}).result()
            self.assertEqual(box.events("bus_message"), [{"type": "lamp.on", "data": {"n": 1}}])
            self.assertEqual([one["topic"] for one in box.driver.named("request")], ["battery.level", "other.topic"])
            box.send("message", {"topic": "speak", "data": {"utterance": "hello"}})
            eventually(lambda: box.start("heard", {}).result() == {"answer": "hello"})

    def test_no_bus_by_default(self) -> None:
        with self.alone("bus-tools") as box:
            self.assertFalse(box.functions.get("message"))
