"""What OVOS's logger prints, as lines of the service's log with their levels."""

from __future__ import annotations

import logging
import re
from typing import Any, TextIO

#: `LOG.fmt` of ovos_utils: time, name, level, text. The name is that of the service, the module, the function and the line.
_LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} - (?P<name>.*?) - (?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) - (?P<text>.*)\Z",
    re.DOTALL,
)


class OvosLog:
    """A standard output: lines of OVOS's logger become records of `logging`, everything else goes to another stream.

    The logger writes each record, with its traceback, at once.
    """

    def __init__(self, other: TextIO) -> None:
        self._other = other

    def write(self, text: str) -> int:
        """Takes what was printed."""
        line = _LINE.match(text.rstrip("\n"))
        if line is None:
            return self._other.write(text)
        where = line["name"].rpartition(" - ")[2]
        logger = logging.getLogger(where.split(":")[0] or "ovos")
        record = logger.makeRecord(
            logger.name, logging.getLevelName(line["level"]), where, 0, "%s", (line["text"],), None
        )
        # Its level was judged by OVOS's logger.
        logging.getLogger().handle(record)
        return len(text)

    def isatty(self) -> bool:
        """It is no terminal."""
        return False

    def __getattr__(self, name: str) -> Any:
        """All else is as the other stream has it: `buffer`, `writelines`, `flush` and the rest."""
        return getattr(self._other, name)
