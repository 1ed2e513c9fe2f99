"""How a tool ends without a result."""

from __future__ import annotations

from typing import Any, Dict, Optional


class ToolError(Exception):
    """Why a tool, an `open`, a `halt` or a `resume` failed; callers read `kind: message`.

    `kind` is the cause in one word, such as `HardwareError`. The message names the thing, what was expected and what to do.
    `data` holds details for programs.
    """

    def __init__(self, kind: str, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.data = data


class Cancelled(BaseException):
    """The run was cancelled or halted: let it pass. It is no Exception, so that `except Exception` does not catch it."""


def failure_of(error: BaseException) -> Dict[str, Any]:
    """The failure that callers get for an exception: its class and its text, or what a ToolError says."""
    if isinstance(error, ToolError):
        return failure(error.kind, error.message, error.data)
    return failure(type(error).__name__, str(error) or "no reason was given")


def failure(kind: str, message: str, data: Optional[Any] = None) -> Dict[str, Any]:
    """A failure as the protocol writes it. Lone surrogates, which are not UTF-8, become question marks."""
    made: Dict[str, Any] = {"kind": _clean(kind), "message": _clean(message)}
    if data is not None:
        made["data"] = data
    return made


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
