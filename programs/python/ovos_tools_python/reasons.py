"""What callers read when OPM's `call_tool` raises: the reference's text, and the reason that it leaves in `__cause__`."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ovos_tools_program.errors import ToolError

#: Problems that are named; more are counted.
MAX_PROBLEMS = 5


def explain(error: BaseException) -> ToolError:
    """The failure for an exception of `call_tool`.

    The service writes `RuntimeError: Tool execution failed for ...: ` before the failure of a tool. So for a tool that raised
    this is what it raised; for everything else it is the text of OPM and its reason. `data.error` is the exact text of OPM.
    """
    if isinstance(error, ToolError):
        return error
    text = str(error)
    data: Dict[str, Any] = {"error": f"{type(error).__name__}: {text}"}
    cause = error.__cause__
    problems = _problems(error)
    if problems:
        data["problems"] = problems
    if cause is not None and text.startswith("Tool execution failed"):
        return ToolError(type(cause).__name__, str(cause) or "no reason was given", data)
    reason = _listed(problems) or (str(_root(error)) if cause is not None else "")
    message = f"{text}: {reason}" if reason and reason != text else text
    return ToolError(type(error).__name__, message or "no reason was given", data)


def _root(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _problems(error: Optional[BaseException]) -> List[Dict[str, Any]]:
    """What pydantic says in the causes of an error: where, and what."""
    while error is not None:
        errors = getattr(error, "errors", None)
        if type(error).__name__ == "ValidationError" and callable(errors):
            return [{"at": ".".join(str(one) for one in each["loc"]), "message": each["msg"]} for each in errors()]
        error = error.__cause__
    return []


def _listed(problems: List[Dict[str, Any]]) -> str:
    named = [f"'{one['at']}': {one['message']}" if one["at"] else one["message"] for one in problems[:MAX_PROBLEMS]]
    if len(problems) > MAX_PROBLEMS:
        named.append(f"and {len(problems) - MAX_PROBLEMS} more")
    return "; ".join(named)
