"""Which toolboxes this interpreter has, read from the metadata of packages. Imports none of them."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import re
import sys
from typing import Any, Dict, List, Optional

from . import folders

#: The entry point group of OPM's toolboxes.
GROUP = "opm.agents.toolbox"
#: Ids that ovos-tools keeps for itself.
RESERVED = ("service", "all")
#: The package that shows the tools of ovos-tools to Python: hosted here, it would show the service its own tools.
OURS = "ovos-tools-toolbox"
_ID = re.compile(r"[a-z0-9_-]+\Z")


@dataclasses.dataclass(frozen=True)
class Entry:
    """One entry point, and the package that it is of."""

    name: str
    target: str
    distribution: str
    version: str
    summary: str
    licence: str
    point: importlib.metadata.EntryPoint

    def manifest(self, toolbox_id: str, subscribes: List[str], requests: List[str]) -> Dict[str, Any]:
        """The manifest under which it is offered."""
        return {
            "id": toolbox_id,
            "version": self.version,
            "description": f"{self.summary} (Python package {self.distribution})".strip(),
            "licence": self.licence,
            "subscribes": subscribes,
            "requests": requests,
        }


def is_id(text: Any) -> bool:
    """Whether a text can be the id of a toolbox."""
    return isinstance(text, str) and bool(_ID.match(text)) and text not in RESERVED


def find() -> Dict[str, Entry]:
    """The entry points by name. Of two with one name the later wins, as in OPM."""
    found: Dict[str, Entry] = {}
    seen = set()
    for distribution in importlib.metadata.distributions():
        points = [point for point in distribution.entry_points if point.group == GROUP]
        if not points:
            continue
        metadata: Any = distribution.metadata
        name = distribution_name(distribution)
        # A package that is on the path twice counts where Python would import it: the first time.
        if name.lower() in seen:
            continue
        seen.add(name.lower())
        licence = metadata.get("License-Expression") or metadata.get("License") or ""
        for point in points:
            found[point.name] = Entry(
                point.name, point.value, name, distribution.version or "", metadata.get("Summary") or "",
                licence.splitlines()[0][:100] if licence else "", point,
            )
    return dict(sorted(found.items()))


def listing() -> Dict[str, Any]:
    """What `--list` prints: the interpreter, its toolboxes, and the versions of everything that is installed."""
    installed = {canonical(distribution_name(one)): one for one in reversed(list(importlib.metadata.distributions()))}
    distributions = {distribution_name(one): one.version or "" for one in installed.values()}
    return {
        "python": {"executable": sys.executable, "version": sys.version.split()[0], "prefix": sys.prefix},
        "imports": folders.after_site(),
        "plugin_manager": distributions.get("ovos-plugin-manager") or distributions.get("ovos_plugin_manager"),
        "toolboxes": [
            {
                "entry_point": one.name,
                "object": one.target,
                "distribution": one.distribution,
                "version": one.version,
                "revision": revision_of(one, installed),
                "problem": problem_of(one),
            }
            for one in find().values()
        ],
        "distributions": dict(sorted(distributions.items())),
    }


def canonical(name: str) -> str:
    """A package's name as packaging tools compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def revision_of(entry: Entry, installed: Dict[str, importlib.metadata.Distribution]) -> str:
    """A hash of the interpreter, and of the versions of the package and of all that it needs, as far as that is installed.

    Another one means that a process which has imported the toolbox runs old code.
    """
    seen: Dict[str, str] = {}
    waiting = [canonical(entry.distribution)]
    while waiting:
        name = waiting.pop()
        if name in seen or name not in installed:
            continue
        seen[name] = installed[name].version or ""
        # With every extra: what is installed may be used.
        named = (re.match(r"[A-Za-z0-9._-]+", text) for text in installed[name].requires or [])
        waiting.extend(canonical(one[0]) for one in named if one)
    text = repr((sys.version, entry.name, entry.target, sorted(seen.items())))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def distribution_name(distribution: importlib.metadata.Distribution) -> str:
    """The name of a package, or nothing where its metadata is broken."""
    metadata: Any = distribution.metadata
    return str(metadata.get("Name") or "")


def problem_of(entry: Entry) -> Optional[str]:
    """Why an entry point cannot be offered; None if it can."""
    if canonical(entry.distribution) == OURS:
        return f"the package {OURS} shows the tools of this service to Python; here it would offer the service its own tools"
    if is_id(entry.name):
        return None
    return f"`{entry.name}` cannot be the id of a toolbox: expected a-z, 0-9, _ and -, and not {' or '.join(RESERVED)}"
