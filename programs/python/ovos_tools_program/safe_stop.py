"""Brings the machine to rest from nothing: what `--safe-stop` does, and the guard after it has killed the toolbox's process."""

from __future__ import annotations

import json
import sys
from typing import Any, Callable, Dict

SafeStop = Callable[[Dict[str, Any]], None]


def stop_safely(safe_stop: SafeStop, config: Dict[str, Any]) -> int:
    """Calls `safe_stop` and returns the exit status: 0, or 1 with the reason on standard error."""
    try:
        safe_stop(config)
        return 0
    except BaseException as error:
        print(f"the safe stop failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1


def read_config() -> Dict[str, Any]:
    """The configuration that `--safe-stop` gets as descriptor 0."""
    return json.load(sys.stdin) or {}
