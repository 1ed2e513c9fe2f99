"""What may be said only so often, and the counts of what was dropped."""

from __future__ import annotations

import threading
import time
from typing import Dict, Optional

COUNTED = (
    "late_completions",
    "unknown_completions",
    "stale_starts",
    "dropped_logs",
    "dropped_progress",
    "dropped_events",
    "dropped_messages",
    "refused_requests",
)


class Rate:
    """A token bucket: `burst` at once, `per_second` for ever."""

    def __init__(self, burst: float, per_second: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._tokens = burst
        self._last = time.monotonic()
        self._lock = threading.Lock()

    def allows(self) -> bool:
        """Whether it may be said now."""
        with self._lock:
            now = time.monotonic()
            self._tokens = min(self._burst, self._tokens + (now - self._last) * self._per_second)
            self._last = now
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True


class Counts:
    """What was dropped since the toolbox was opened."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(COUNTED, 0)
        self._changed = False
        self._lock = threading.Lock()

    def add(self, what: str) -> None:
        """Counts one more."""
        with self._lock:
            self._counts[what] += 1
            self._changed = True

    def take_changed(self) -> Optional[Dict[str, int]]:
        """The counts, if they have changed since they were taken last."""
        with self._lock:
            if not self._changed:
                return None
            self._changed = False
            return dict(self._counts)
