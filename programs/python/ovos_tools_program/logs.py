"""Forwards Python's `logging` to the service's log."""

from __future__ import annotations

import logging
from typing import Any, Callable, Dict

from .rates import Rate

#: The rest of a longer line is left out.
MAX_LINE = 8 * 1024


class ForwardingHandler(logging.Handler):
    """Sends each record as `log`: at most 500 a second, 1000 at once."""

    def __init__(self, say: Callable[[Dict[str, Any]], bool], dropped: Callable[[], None]) -> None:
        super().__init__()
        self._say = say
        self._dropped = dropped
        self._rate = Rate(1000, 500)

    def emit(self, record: logging.LogRecord) -> None:
        """Sends one record; never raises, never blocks."""
        try:
            text = self.format(record)[:MAX_LINE].encode("utf-8", "replace").decode("utf-8")
            line = {"level": level_of(record.levelno), "target": record.name, "message": text}
            if not (self._rate.allows() and self._say(line)):
                self._dropped()
        except Exception:
            self.handleError(record)


def level_of(level: int) -> int:
    """The protocol's level of a level of `logging`: 1 error, 2 warning, 3 info, 4 debug, 5 trace."""
    for least, ours in ((logging.ERROR, 1), (logging.WARNING, 2), (logging.INFO, 3), (logging.DEBUG, 4)):
        if level >= least:
            return ours
    return 5
