"""What callers read when OPM's `call_tool` raises: the reference's text, and the reason that it leaves in `__cause__`."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ovos_tools_program.errors import ToolError

#: Problems that are named; more are counted.
MAX_PROBLEMS = 5


def explain(error: BaseException) -> ToolError:
    """The failure for an exception of `call_tool`: the text of OPM, which the service passes on as it is, and its reason.

    `data.error` is the text of OPM alone.
    """
    if isinstance(error, ToolError):
        return error
    text = str(error)
    data: Dict[str, Any] = {"error": f"{type(error).__name__}: {text}"}
    cause = error.__cause__
    problems = _problems(error)
    if problems:
        data["problems"] = problems
    reason = _listed(problems)
    if cause is not None and text.startswith("Tool execution failed"):
        # What the tool raised, by its class.
        reason = f"{type(cause).__name__}: {cause}"
    elif cause is not None and not reason:
        reason = str(_root(error))
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
