"""The command line: which toolboxes this process hosts.

--list               prints what the interpreter has as JSON, and imports none of it
--alone ENTRY_POINT  hosts one toolbox, under the id --id (default: the name of its entry point)
--only ENTRY_POINT   any number of times: hosts these, with the feature `toolboxes`
(neither)            hosts all of them, with the feature `toolboxes`
--folders            prints from where the interpreter, started with -S, imports, and runs no code of a package

--request TOPIC and --subscribe TOPIC, each any number of times, name what a toolbox with `"bus": "proxy"` may ask and hears.

Exit status: 0 after `close`; 69 if there is no such entry point; 75 if the program wants to be replaced, because cancelled
calls never ended and hold threads.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from typing import Any, Dict, List, NoReturn, Optional

from ovos_tools_program.box import Box
from ovos_tools_program.errors import ToolError
from ovos_tools_program.main import main
from ovos_tools_program.program import Program

from . import entries
from .entries import Entry
from .opm_box import OpmBox
from .ovos_log import OvosLog

#: No toolbox of this name is installed (EX_UNAVAILABLE).
NOT_THERE = 69
#: The program wants to be replaced (EX_TEMPFAIL).
REPLACE = 75
#: How long other calls may go on before the program ends to be replaced, in seconds.
REPLACE_WITHIN = 5.0


class Hosted:
    """The toolboxes of this process, by the ids under which they are offered."""

    def __init__(self, offered: Dict[str, Entry], subscribes: List[str], requests: List[str]) -> None:
        self._offered = offered
        self._topics = (subscribes, requests)
        self._program: Optional[Program] = None
        self._replacing = threading.Lock()

    def manifests(self) -> List[Dict[str, Any]]:
        """What `hello` says."""
        return [one.manifest(toolbox_id, *self._topics) for toolbox_id, one in self._offered.items()]

    def started(self, program: Program) -> None:
        """The program serves now."""
        self._program = program

    def make(self, toolbox_id: str) -> Box:
        """A toolbox that was offered, not yet open."""
        entry = self._offered.get(toolbox_id)
        if entry is None:
            raise ToolError("ToolboxError", f"no toolbox `{toolbox_id}` is offered; there are {', '.join(self._offered)}")
        manifest = entry.manifest(toolbox_id, *self._topics)
        return OpmBox(entry, manifest, self._replace)

    def _replace(self, why: str) -> None:
        """Ends the program for the service to start a new one, once the other calls have ended."""
        if not self._replacing.acquire(blocking=False):
            return

        def end() -> None:
            until = time.monotonic() + REPLACE_WITHIN
            program = self._program
            while program is not None and time.monotonic() < until and any(one.busy for one in program.served.values()):
                time.sleep(0.05)
            print(f"the program ends to be replaced: {why}", file=sys.stderr, flush=True)
            if program is not None:
                program.exit(REPLACE)
            os._exit(REPLACE)

        threading.Thread(target=end, name="replace", daemon=True).start()


def keep_stdout_away() -> None:
    """Lets what a library prints go to standard error: OVOS's logger writes to standard output when it is imported."""
    os.dup2(2, 1)
    sys.stdout = OvosLog(sys.stderr)  # type: ignore[assignment]


def run() -> NoReturn:
    """Does what the command line says. Does not return."""
    parser = argparse.ArgumentParser(prog="ovos_tools_python", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--list", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--alone", metavar="ENTRY_POINT", help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", metavar="ENTRY_POINT", help=argparse.SUPPRESS)
    parser.add_argument("--id", help=argparse.SUPPRESS)
    parser.add_argument("--request", action="append", default=[], metavar="TOPIC", help=argparse.SUPPRESS)
    parser.add_argument("--subscribe", action="append", default=[], metavar="TOPIC", help=argparse.SUPPRESS)
    parser.add_argument("--safe-stop", action="store_true", help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.list:
        print(json.dumps(entries.listing(), indent=2))
        sys.exit(0)
    if said.safe_stop:
        sys.exit(0)  # nothing here moves anything
    keep_stdout_away()
    found = entries.find()
    if said.alone is None:
        allowed = found if said.only is None else said.only
        offered = {one.name: one for one in found.values() if one.name in allowed and entries.problem_of(one) is None}
        hosted = Hosted(offered, said.subscribe, said.request)
        main(hosted.make, hosted.manifests(), started=hosted.started)
    if said.alone not in found:
        names = ", ".join(found) or "none"
        print(f"{sys.executable} has no toolbox `{said.alone}`; it has: {names}", file=sys.stderr)
        sys.exit(NOT_THERE)
    hosted = Hosted({said.id or said.alone: found[said.alone]}, said.subscribe, said.request)
    main(hosted.make, hosted.manifests()[0], started=hosted.started)
