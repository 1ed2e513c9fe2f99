"""Each published toolbox, in this host and under OPM itself, called with the same arguments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Dict, Tuple

from ovos_tools_program.testing import Driver, Harness

from .support import HOST, ProgramTest

# Neither side gets a network, which would make answers differ and download a dictionary.
os.environ.update(dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"))
os.environ["OVOS_DEFAULT_LOG_LEVEL"] = "CRITICAL"

#: Entry point, tool, arguments.
CALLS = [
    ("ovos-math-tools", "evaluate_expression", {"expression": "2 ** 100"}),
    ("ovos-math-tools", "evaluate_expression", {"expression": "1 / 0"}),
    ("ovos-math-tools", "unit_convert", {"value": "3", "from_unit": "km", "to_unit": "m"}),
    ("ovos-math-tools", "statistics_summary", {"data": [1, 2, 3.5]}),
    ("ovos-math-tools", "statistics_summary", {}),
    ("ovos-math-tools", "solve_equation", {"equation": "x + 2 = 5"}),
    ("ovos-filesystem-tools", "write_file", {"path": "a.txt", "content": "é"}),
    ("ovos-filesystem-tools", "read_file", {"path": "a.txt"}),
    ("ovos-filesystem-tools", "read_file", {"path": "../secret"}),
    ("ovos-filesystem-tools", "list_directory", {"path": "."}),
    ("ovos-filesystem-tools", "search_in_files", {"pattern": "x", "path": "."}),
    ("ovos-filesystem-tools", "find_files", {"pattern": "*.txt", "path": "."}),
    ("ovos-shell-tools", "run_command", {"command": "echo hello"}),
    ("ovos-wordnet-tools", "define_word", {"word": "tree"}),
    ("ovos-wordnet-tools", "word_relations", {"word": "tree"}),
    ("ovos-web-search-tools", "web_search", {"query": "tree"}),
    ("ovos-wolfram-alpha-tools", "search_wolfram_alpha", {"query": "1 + 1"}),
    ("ovos-wikipedia-tools", "search_wikipedia", {"query": "tree"}),
    ("ovos-ddg-tools", "search_duckduckgo", {"query": "tree"}),
]
#: The published toolboxes, and how many tools each has without configuration.
TOOLS = {
    "ovos-clock-tools": 1, "ovos-filesystem-tools": 5, "ovos-math-tools": 4, "ovos-shell-tools": 1,
    "ovos-web-search-tools": 1, "ovos-skill-md-toolbox": 0, "ovos-mcp-toolbox": 0, "ovos-utcp-toolbox": 0,
    "ovos-wikipedia-tools": 1, "ovos-ddg-tools": 3, "ovos-wolfram-alpha-tools": 1, "ovos-wordnet-tools": 2,
}
#: Of what they answer without a network only the keys are compared.
NETWORK = {"ovos-web-search-tools", "ovos-wolfram-alpha-tools", "ovos-wikipedia-tools", "ovos-ddg-tools"}


def under_opm(box: Any, tool: str, args: Dict[str, Any]) -> Tuple[str, Any]:
    """What the reference answers: a result, or the text of its error."""
    try:
        result = box.call_tool(tool, args).model_dump(mode="json")
        json.dumps(result, allow_nan=False)
        return "result", result
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"


class Published(ProgramTest):
    """All of them in one program: the feature `toolboxes`."""

    driver: Driver
    boxes: Dict[str, Harness]

    @classmethod
    def setUpClass(cls) -> None:
        cls.scratch = tempfile.TemporaryDirectory()
        cls.errors = open(Path(cls.scratch.name) / "errors", "ab")
        home = Path(cls.scratch.name) / "home"
        for folder in ("home", "here", "reference"):
            (Path(cls.scratch.name) / folder).mkdir()
        cls.driver = Driver.start(
            [sys.executable, str(HOST)], cwd=Path(cls.scratch.name) / "here", stdout=cls.errors, stderr=cls.errors,
            env={**os.environ, "HOME": str(home)},
        )
        cls.hello = cls.driver.wait(lambda one: one.name == "hello").body
        cls.boxes = {}
        for one in cls.hello["toolboxes"]:
            cls.boxes[one["id"]] = Harness.of_driver(cls.driver, one["id"], {})
        cls.points = {one.name: one for one in entry_points(group="opm.agents.toolbox")}
        cls.references: Dict[str, Any] = {}

    @classmethod
    def tearDownClass(cls) -> None:
        cls.driver.send("close", {"seq": 999})
        cls.driver.wait(lambda one: one.name == "closed" and one.toolbox is None)
        assert cls.driver.end() == 0
        cls.errors.close()
        cls.scratch.cleanup()

    def reference(self, name: str) -> Any:
        if name not in self.references:
            config = {"root_path": str(Path(self.scratch.name) / "reference")}
            self.references[name] = self.points[name].load()(config=config, bus=None)
        return self.references[name]

    def test_each_has_its_own_id_and_its_tools(self) -> None:
        self.assertEqual(self.hello["features"], ["toolboxes"])
        self.assertEqual({name: len(box.tools()) for name, box in self.boxes.items()}, TOOLS)
        for name, box in self.boxes.items():
            with self.subTest(name):
                self.assertEqual(self.reference(name).toolbox_id, name)
                listed = [dict(one) for one in box.tools().values()]
                effects = {one["name"]: one.pop("effect") for one in listed}
                self.assertEqual({one.pop("validates") for one in listed} - {True}, set())
                self.assertEqual(listed, self.reference(name).tool_json_list)
                changes = {"write_file", "run_command"}
                self.assertEqual(effects, {tool: "write" if tool in changes else "read" for tool in effects})

    def test_each_answers_as_under_opm(self) -> None:
        for name, tool, args in CALLS:
            with self.subTest((name, tool, args)):
                kind, said = under_opm(self.reference(name), tool, args)
                end = self.boxes[name].start(tool, args).wait(60)["end"]
                if kind == "error":
                    error = end["error"]
                    exact = error["data"]["error"] if "data" in error else f"{error['kind']}: {error['message']}"
                    self.assertTrue(said.startswith(exact), f"{said} is not {exact}")
                elif name in NETWORK:
                    self.assertEqual(end["output"].keys(), said.keys())
                else:
                    self.assertEqual(self.plain(end["output"]), self.plain(said))

    def plain(self, value: Any) -> Any:
        """Without the folder, which differs."""
        text = json.dumps(value)
        for folder in ("here", "reference"):
            text = text.replace(str(Path(self.scratch.name) / folder), "FOLDER")
        return json.loads(text)

    def test_the_clock(self) -> None:
        end = self.boxes["ovos-clock-tools"].start("get_current_datetime", {}).wait()["end"]
        now = self.reference("ovos-clock-tools").call_tool("get_current_datetime", {}).model_dump(mode="json")
        self.assertEqual(end["output"].keys(), now.keys())

    def test_a_halt_of_one_leaves_the_others(self) -> None:
        body = {"seq": 700, "subsystems": ["all"], "emergency": True, "stop_epoch": 1}
        self.driver.send("halt", body, "ovos-math-tools")
        halted = self.driver.wait(lambda one: one.name == "halted" and one.body["seq"] == 700)
        self.assertEqual((halted.toolbox, halted.body["answer"]), ("ovos-math-tools", {"ok": None}))
        stale = self.boxes["ovos-math-tools"].start("evaluate_expression", {"expression": "1"})
        self.assertEqual(stale.wait()["end"], "cancelled")
        self.boxes["ovos-math-tools"].epoch = 1
        other = self.boxes["ovos-filesystem-tools"].start("list_directory", {"path": "."})
        self.assertIn("output", other.wait()["end"])

    def test_one_is_closed_and_opened_again(self) -> None:
        box = self.boxes["ovos-clock-tools"]
        self.assertTrue(box.close())
        self.boxes["ovos-clock-tools"] = again = Harness.of_driver(self.driver, "ovos-clock-tools", {})
        self.assertIn("output", again.start("get_current_datetime", {}).wait()["end"])


class Listing(ProgramTest):
    def test_the_list_imports_nothing(self) -> None:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", HOST, "--list"], capture_output=True, text=True, timeout=20, check=True
        )
        listed = json.loads(done.stdout)
        self.assertLessEqual(set(TOOLS), {one["entry_point"] for one in listed["toolboxes"]})
        self.assertEqual({one["problem"] for one in listed["toolboxes"]}, {None})
        self.assertIn("pydantic", listed["distributions"])
        self.assertTrue(listed["plugin_manager"])
        imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
        self.assertFalse({"pydantic", "ovos_plugin_manager", "ovos_agentic_loop", "ovos_utils"} & imported)

    def test_a_toolbox_that_is_not_installed(self) -> None:
        done = subprocess.run(
            [sys.executable, HOST, "--alone", "other-tools"], capture_output=True, text=True, timeout=20, check=False
        )
        self.assertEqual(done.returncode, 69)
        self.assertIn("has no toolbox `other-tools`; it has: ovos-clock-tools", done.stderr)
