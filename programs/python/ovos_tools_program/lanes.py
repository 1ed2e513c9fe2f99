"""Where the notices of one toolbox go."""

from __future__ import annotations

from typing import Any, Dict, Protocol


class Lanes(Protocol):
    """The two lanes, and the guard's ear."""

    def data(self, name: str, body: Any) -> None:
        """Says something on the data lane."""

    def data_raw(self, name: str, body: bytes) -> None:
        """As `data`, for a body that is JSON already."""

    def data_or_drop(self, name: str, body: Any) -> bool:
        """As `data`, for what may be lost; False if it was."""

    def control(self, name: str, body: Any) -> None:
        """Says something on the control lane."""

    def moving(self, runs: int) -> None:
        """Tells the guard how many runs move something."""

    def opening(self, body: Dict[str, Any]) -> None:
        """Tells the guard what `open` said."""

    def opened(self, functions: Dict[str, bool]) -> None:
        """Tells the guard what the toolbox can do."""
