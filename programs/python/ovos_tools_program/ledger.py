"""Which starts may begin: cancels that overtook their start, and starts from before an emergency stop."""

from __future__ import annotations

from typing import Dict


class Ledger:
    """Rules 1 and 2 of docs/protocol.md. Not locked: its owner calls it under a lock."""

    def __init__(self, epoch: int) -> None:
        #: The newest emergency stop that is known.
        self.epoch = epoch
        #: How many starts have come.
        self.starts = 0
        self._overtaken: Dict[int, int] = {}

    def stopped(self, epoch: int) -> None:
        """A newer emergency stop is known."""
        self.epoch = max(self.epoch, epoch)

    def cancelled(self, run: int, starts: int) -> None:
        """A cancel came for a run that is not known: it may be on its way."""
        if starts > self.starts:
            self._overtaken[run] = starts

    def begins(self, run: int) -> bool:
        """Counts a start; False if a cancel has overtaken it."""
        self.starts += 1
        if not self._overtaken:
            return True
        overtaken = self._overtaken.pop(run, None) is not None
        self._overtaken = {one: starts for one, starts in self._overtaken.items() if starts > self.starts}
        return not overtaken

    def is_stale(self, epoch: int) -> bool:
        """Whether a start was planned before the newest emergency stop."""
        return epoch < self.epoch
