"""What a toolbox can tell and ask the service, beside the answers to orders."""

from __future__ import annotations

import concurrent.futures
import threading
from typing import Any, Callable, Dict, Optional

from .errors import ToolError
from .rates import Counts, Rate

Say = Callable[[str, Dict[str, Any]], None]
#: Events that the service acts on: they have limits of their own.
_OWN_RATES = ("backend", "latched", "tools_changed")


class Host:
    """The service, for one open toolbox. Every method may be called on any thread."""

    def __init__(self, say: Say, counts: Counts, max_requests: int) -> None:
        self._say = say
        self._counts = counts
        self._max_requests = max_requests
        self._others = Rate(200, 50)
        self._rates = {kind: Rate(200, 100) for kind in _OWN_RATES}
        self._lock = threading.Lock()
        self._requests = 0
        self._asked: Dict[int, concurrent.futures.Future[Any]] = {}

    def event(self, kind: str, data: Optional[Dict[str, Any]] = None, severity: str = "info") -> None:
        """Puts an event on the bus. `severity` is `info`, `warning` or `error`. At most 50 a second."""
        if not self._rates.get(kind, self._others).allows():
            self._counts.add("dropped_events")
            return
        self._say("event", {"kind": kind, "severity": severity, "data": data or {}})

    def simulator(self, reason: str = "") -> None:
        """Says that the toolbox drives a simulator. One that does not say so counts as hardware."""
        self.backend("ready", reason, simulated=True)

    def backend(self, state: str, reason: str = "", simulated: bool = False, unit: Optional[str] = None) -> None:
        """Says how the machine is: `state` is a word such as `ready` or `degraded`."""
        data: Dict[str, Any] = {"state": state, "reason": reason, "simulated": simulated}
        if unit is not None:
            data["unit"] = unit
        self.event("backend", data, "info" if state == "ready" else "warning")

    def latched(self, reason: str) -> None:
        """Says that the machine is in emergency stop, for example because its button was pressed."""
        self.event("latched", {"reason": reason}, "error")

    def tools_changed(self) -> None:
        """Has the service ask for the tools again."""
        self.event("tools_changed")

    def request(self, topic: str, data: Optional[Dict[str, Any]] = None, timeout: float = 3.0) -> Any:
        """Asks the bus and waits for the answer. The manifest's `requests` has to name the topic. Raises ToolError."""
        return self._ask(topic, data, timeout).result()

    async def request_async(self, topic: str, data: Optional[Dict[str, Any]] = None, timeout: float = 3.0) -> Any:
        """As `request`, for async tools."""
        import asyncio

        return await asyncio.wrap_future(self._ask(topic, data, timeout))

    def _ask(self, topic: str, data: Optional[Dict[str, Any]], timeout: float) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        with self._lock:
            if len(self._asked) >= self._max_requests:
                self._counts.add("refused_requests")
                raise ToolError("BusyError", f"{self._max_requests} requests are in progress; ask again later")
            self._requests += 1
            number = self._requests
            self._asked[number] = future
        body = {"request": number, "topic": topic, "data": data or {}, "timeout_ms": max(1, int(timeout * 1000))}
        try:
            self._say("request", body)
        except Exception:
            self._asked.pop(number, None)
            raise
        return future

    def answered(self, number: int, answer: Dict[str, Any]) -> None:
        """The service's answer to a request."""
        future = self._asked.pop(number, None)
        if future is None or not future.set_running_or_notify_cancel():
            return
        if "ok" in answer:
            future.set_result(answer["ok"])
        else:
            said = answer.get("error") or answer.get("lost") or {}
            future.set_exception(ToolError(said.get("kind", "ToolboxError"), said.get("message", ""), said.get("data")))

    def end(self) -> None:
        """Fails what was asked: no answer comes any more."""
        for number in list(self._asked):
            self.answered(number, {"error": {"kind": "ToolboxClosed", "message": "the toolbox is closed"}})
