"""The effects of Python tools: what is known of the public ones, what the configuration says, else `write`.

OPM's tools state no effect. None of them is ever `motion`.
"""

from __future__ import annotations

import logging
from typing import Any, Dict, Tuple

log = logging.getLogger("ovos_tools_python")
ALLOWED = ("read", "write")

_READ: Dict[Tuple[str, str], Tuple[str, ...]] = {
    ("ovos-agentic-loop", "ovos-clock-tools"): ("get_current_datetime",),
    ("ovos-agentic-loop", "ovos-filesystem-tools"): ("read_file", "list_directory", "search_in_files", "find_files"),
    ("ovos-agentic-loop", "ovos-math-tools"): (
        "evaluate_expression", "unit_convert", "statistics_summary", "solve_equation",
    ),
    ("ovos-agentic-loop", "ovos-web-search-tools"): ("web_search",),
    ("ovos-wikipedia-plugin", "ovos-wikipedia-tools"): ("search_wikipedia",),
    ("ovos-ddg-plugin", "ovos-ddg-tools"): ("search_duckduckgo", "duckduckgo_infobox", "duckduckgo_image"),
    ("ovos-wolfram-alpha-plugin", "ovos-wolfram-alpha-tools"): ("search_wolfram_alpha",),
    ("ovos-wordnet-plugin", "ovos-wordnet-tools"): ("define_word", "word_relations"),
}


def effect_of(distribution: str, entry_point: str, tool: str, configured: Any) -> str:
    """The effect of a tool. `configured` is the key `effects` of the toolbox's section: tool to effect."""
    said = configured.get(tool) if isinstance(configured, dict) else None
    if said in ALLOWED:
        return str(said)
    if said is not None:
        log.warning("effects.%s is %r, expected \"read\" or \"write\"; it counts as `write`", tool, said)
        return "write"
    package = distribution.lower().replace("_", "-")
    return "read" if tool in _READ.get((package, entry_point), ()) else "write"
