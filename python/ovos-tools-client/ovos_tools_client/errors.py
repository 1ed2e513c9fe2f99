"""Why there is no result."""
from __future__ import annotations

from typing import Any, Mapping, Optional

from .models import Confirmation, RunResult


class ToolsError(RuntimeError):
    """The service answers with an error. The text is the service's: it says what is wrong and what is accepted."""

    def __init__(self, text: str, kind: Optional[str] = None, detail: Optional[Mapping[str, Any]] = None):
        super().__init__(text)
        #: The kind, such as `ValueError`, `TimeoutError`, `CancelledError` or `EmergencyStop`: the table in docs/bus.md.
        self.kind = kind or text.partition(":")[0]
        #: Details for a program: `data`, and the `report` of the actions that ran.
        self.detail = dict(detail or {})


class ConfirmationRequired(ToolsError):
    """A person has to confirm the call. `confirmation` says what it would do."""

    def __init__(self, text: str, confirmation: Confirmation):
        super().__init__(text, "ConfirmationRequired")
        self.confirmation = confirmation


class RunFailed(ToolsError):
    """Not every step of a run completed. `run` says what became of each."""

    def __init__(self, run: RunResult):
        super().__init__(run.error or "the run failed")
        self.run = run


class BusAway(ToolsError):
    """The messagebus is away: nothing was sent."""


class NoAnswer(ToolsError):
    """The service did not answer in time."""


class CallLost(ToolsError):
    """The answer to a call was lost with the bus or the service. How far the call came is not known."""
