"""What the tests share: starting programs, and checking all that they say against the published schemas."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List

from ovos_tools_program.testing import Driver, Harness

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parent
SAMPLES = HERE / "samples"
EXAMPLES = PROGRAMS.parent.parent / "examples"
HOST = PROGRAMS / "ovos_tools_python"
SCHEMA = PROGRAMS.parent.parent / "schemas" / "protocol" / "notice.json"
#: The interpreter for programs of the author's module, which needs nothing but the standard library.
PYTHON = os.environ.get("PYTHON_PROGRAM", sys.executable)

try:
    import jsonschema
except ImportError:
    jsonschema = None


def check_notices(driver: Driver) -> None:
    """Everything that the program said is what schemas/protocol/notice.json allows."""
    if jsonschema is None:
        return
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    for frame in driver.notices:
        if len(str(frame.body)) < 100_000:
            validator.validate({"notice": frame.name, "body": frame.body})


def eventually(what: Callable[[], Any], seconds: float = 5.0) -> Any:
    """Waits until something is true, and returns it."""
    until = time.monotonic() + seconds
    while True:
        value = what()
        if value or time.monotonic() > until:
            assert value, f"not true within {seconds} s"
            return value
        time.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class ProgramTest(unittest.TestCase):
    """Starts programs in an empty folder of their own, and ends them."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.journal = self.folder / "journal"

    def start(self, *command: Any, env: Dict[str, str] | None = None) -> Driver:
        """Starts a program; what it says is checked, and it is killed, when the test ends."""
        stderr = open(self.folder / "stderr", "ab")
        self.addCleanup(stderr.close)
        paths = os.pathsep.join([str(PROGRAMS), str(SAMPLES)])
        driver = Driver.start(
            [str(one) for one in command], cwd=self.folder, stdout=stderr, stderr=stderr,
            env={**os.environ, "PYTHONPATH": paths, "HOME": str(self.folder), **(env or {})},
        )
        self.addCleanup(self._end, driver)
        return driver

    def _end(self, driver: Driver) -> None:
        if driver.process is not None and driver.process.poll() is None:
            driver.process.kill()
        driver.end()
        check_notices(driver)

    def awkward(self, config: Dict[str, Any] | None = None, **limits: Any) -> Harness:
        """The author's toolbox that misbehaves, in a process of its own."""
        driver = self.start(PYTHON, SAMPLES / "awkward.py")
        return Harness.of_driver(driver, None, {"journal": str(self.journal), **(config or {})}, **limits)

    def alone(self, entry_point: str, config: Dict[str, Any] | None = None, *more: str, **limits: Any) -> Harness:
        """One OPM toolbox."""
        return Harness.of_driver(self.start(sys.executable, HOST, "--alone", entry_point, *more), None, config, **limits)

    def lines(self) -> List[str]:
        """What reached the machine."""
        return self.journal.read_text().splitlines() if self.journal.exists() else []

    def stderr(self) -> str:
        """What the programs of this test wrote to standard output and error."""
        return (self.folder / "stderr").read_text()
