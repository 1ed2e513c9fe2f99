"""The order of halts and resumes of one toolbox.

After an emergency halt no gentler one reaches the toolbox until a resume, in whatever order they were asked for. No halt
waits for another, nor for a resume.
"""

from __future__ import annotations

import threading
from typing import Callable, List

from .errors import ToolError

Halt = Callable[[List[str], bool], None]
ALL = ["all"]


class Stops:
    """Calls `halt(subsystems, emergency)` and `resume()` of a toolbox."""

    def __init__(self, halt: Halt, resume: Callable[[], None]) -> None:
        self._halt = halt
        self._resume = resume
        self._lock = threading.Lock()
        self._emergencies = 0
        self._stopped = False

    @property
    def stopped(self) -> bool:
        """Whether an emergency stop holds."""
        with self._lock:
            return self._stopped

    def emergency_begins(self) -> None:
        """Records that an emergency halt arrived. Call it on the thread that reads orders, before `halt`, to keep their order."""
        with self._lock:
            self._emergencies += 1
            self._stopped = True

    def halt(self, subsystems: List[str], emergency: bool) -> None:
        """Halts. Raises what the toolbox raises."""
        with self._lock:
            if self._stopped and not emergency:
                return
        try:
            self._halt(subsystems, emergency)
        finally:
            # An emergency stop that was lifted meanwhile is not repeated: nothing would lift it again.
            with self._lock:
                again = not emergency and self._stopped
            if again:
                self._halt(ALL, True)

    def again(self, subsystems: List[str]) -> None:
        """Halts once more what may have been commanded during a halt: gently if no emergency stop holds now."""
        self.halt(subsystems, self.stopped)

    def resume_begins(self) -> int:
        """A resume has come. Said on the thread that reads orders; `resume` takes what it returns."""
        with self._lock:
            return self._emergencies

    def resume(self, seen: int) -> None:
        """Asks the toolbox whether the stop may be lifted. Raises what the toolbox raises, and ToolError if a newer stop
        came meanwhile: then the toolbox is halted again, because it may have powered something, even if it refused."""
        lifted = False
        try:
            self._resume()
            lifted = True
        finally:
            with self._lock:
                overtaken = self._stopped and self._emergencies != seen
                if lifted and not overtaken:
                    self._stopped = False
            if overtaken:
                self._halt(ALL, True)
                raise ToolError("EmergencyStop", "a newer emergency stop came while this one was lifted; it holds")
