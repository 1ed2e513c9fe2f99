"""One toolbox, and the orders that concern it. Read `Served.order`, then `Served.control`."""

from __future__ import annotations

import functools
import logging
import queue
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional

from .box import Box
from .errors import ToolError, failure, failure_of
from .frames import to_json
from .host import Host
from .lanes import Lanes
from .rates import Counts
from .runs import FRAME, Runs, unwritable
from .stops import Stops

log = logging.getLogger("ovos_tools_program")
#: Halts and resumes that may hang inside the toolbox at once.
MAX_HALTS = 16
#: Time between the last run that is given up at `close` and the limit of the service.
CLOSE_MARGIN = 0.8


class Served:
    """Serves one copy of a toolbox, from `open` to `closed`."""

    def __init__(self, box: Box, lanes: Lanes, opening: Dict[str, Any]) -> None:
        self.box = box
        self.id: str = box.manifest["id"]
        self.counts = Counts()
        self.host = Host(self._say, self.counts, opening.get("max_requests", 64))
        self._lanes = lanes
        self._opening = opening
        self._stops = Stops(box.halt, box.resume)
        self._runs = Runs(box, lanes, self.host, self._stops, self.counts, opening)
        self._lock = threading.Lock()
        self._halts = 0
        self._closing = False
        self._closed: Optional[bool] = None
        self._close_lock = threading.Lock()
        self._is_open = False
        self._messages: Deque[Dict[str, Any]] = deque(maxlen=opening.get("max_messages", 64))
        #: None ends the thread that serves it.
        self._work: queue.Queue[Optional[Callable[[], None]]] = queue.Queue()
        threading.Thread(target=self._serve_work, name=f"box-{self.id}", daemon=True).start()
        lanes.opening(opening)
        self._work.put(self._open)

    @property
    def busy(self) -> int:
        """How many runs have not ended."""
        return self._runs.busy

    # --- orders

    def order(self, name: str, body: Dict[str, Any]) -> None:
        """An order of the data lane. Returns at once."""
        if name == "start":
            self._runs.start(body)
        elif name == "response":
            self.host.answered(body["request"], body["answer"])
        elif name == "message":
            full = len(self._messages) == self._messages.maxlen
            self._messages.append(body)
            if full:
                self.counts.add("dropped_messages")
            else:
                self._work.put(self._message)
        elif name == "tools":
            self._ask("tools", body, lambda: {"tools": self.box.tools()})
        elif name == "plan":
            self._ask("planned", body, lambda: self.box.plan(body["tool"], body["args"]))
        elif name == "conclude":
            self._ask("concluded", body, lambda: self.box.conclude(body["tool"], body["args"], body["report"]))
        elif name == "may_close":
            self._ask("closable", body, self.box.may_close)

    def control(self, name: str, body: Dict[str, Any]) -> None:
        """An order of the control lane. Returns at once."""
        if name == "halt":
            self._halt(body)
        elif name == "resume":
            seen = self._stops.resume_begins()
            self._beside(functools.partial(self._stops.resume, seen), functools.partial(self._told, "resumed", body["seq"]))
        elif name == "epoch":
            self._runs.stopped(body["stop_epoch"])
        elif name in ("cancel", "give_up"):
            self._runs.cancel(body["run"], body["starts"], name == "give_up")

    def _halt(self, body: Dict[str, Any]) -> None:
        """Halts on a thread of its own, and answers."""
        subsystems: List[str] = body["subsystems"]
        emergency = bool(body.get("emergency"))
        if emergency:
            self._stops.emergency_begins()
            self._runs.stopped(body.get("stop_epoch") or 0)
        self._runs.halted(subsystems)
        told = functools.partial(self._told, "halted", body["seq"])
        self._beside(functools.partial(self._stops.halt, subsystems, emergency), told)

    def _told(self, notice: str, seq: int, answer: Dict[str, Any]) -> None:
        self._lanes.control(notice, {"seq": seq, "answer": answer})

    # --- questions, one after the other

    def _serve_work(self) -> None:
        while True:
            work = self._work.get()
            if work is None:
                return
            work()

    def _open(self) -> None:
        try:
            self.box.open(self._opening.get("config") or {}, self.host)
            functions = self.box.functions()
            if self._closing:
                self.box.close()
                raise ToolError("ToolboxClosed", f"toolbox `{self.id}` was closed while it opened")
            self._is_open = self._runs.open = True
            answer: Dict[str, Any] = {"ok": functions}
        except BaseException as error:
            functions = {}
            answer = {"error": failure_of(error)}
            log.debug("open failed", exc_info=True)
        self._lanes.opened(functions)
        self._answer("opened", self._opening.get("seq", 0), answer)

    def _ask(self, notice: str, body: Dict[str, Any], question: Callable[[], Any]) -> None:
        def work() -> None:
            try:
                answer: Dict[str, Any] = {"ok": question()}
            except BaseException as error:
                answer = {"error": failure_of(error)}
            self._answer(notice, body["seq"], answer)

        if self._work.qsize() >= self._opening.get("max_queued", 16384):
            self._answer(notice, body["seq"], {"error": failure("BusyError", "too many questions wait for the toolbox")})
        else:
            self._work.put(work)

    def _answer(self, notice: str, seq: int, answer: Dict[str, Any]) -> None:
        limit = self._opening.get("max_result_bytes", 8 << 20)
        try:
            text = to_json({"seq": seq, "answer": answer})
        except (ValueError, TypeError, RecursionError) as error:
            text = to_json({"seq": seq, "answer": {"error": unwritable(error)}})
        if len(text) > limit + FRAME:
            problem = failure("ResultTooLarge", f"the answer has {len(text)} bytes; at most {limit} are allowed")
            text = to_json({"seq": seq, "answer": {"error": problem}})
        self._lanes.data_raw(notice, text)

    def _message(self) -> None:
        try:
            body = self._messages.popleft()
            self.box.message(body["topic"], body["data"])
        except IndexError:
            return
        except Exception:
            log.exception("a message was not handled")

    def _beside(self, work: Callable[[], None], answer: Callable[[Dict[str, Any]], None]) -> None:
        """Does a halt or a resume on a thread of its own, for it may hang."""

        def job() -> None:
            try:
                work()
                said: Dict[str, Any] = {"ok": None}
            except BaseException as error:
                said = {"error": failure_of(error)}
            with self._lock:
                self._halts -= 1
            answer(said)

        with self._lock:
            full = self._halts >= MAX_HALTS
            self._halts += 0 if full else 1
        if full:
            answer({"error": failure("BusyError", f"{MAX_HALTS} halts hang in toolbox `{self.id}`")})
            return
        try:
            threading.Thread(target=job, name=f"halt-{self.id}", daemon=True).start()
        except RuntimeError as error:
            with self._lock:
                self._halts -= 1
            answer({"error": failure_of(error)})

    # --- the end

    def close(self, limit: Optional[float] = None) -> bool:
        """Takes no more work, waits for what is under way, and closes the toolbox. False if that took too long.

        Asked twice, because the service is gone while it closes, the second waits for the first.
        """
        with self._close_lock:
            if self._closed is None:
                self._closed = self._close_once(limit)
            return self._closed

    def _close_once(self, limit: Optional[float]) -> bool:
        until = time.monotonic() + (limit or max(0.1, self._opening.get("close_ms", 10000) / 1000 - CLOSE_MARGIN))
        self._closing = True
        in_time = self._runs.end(until)
        self.host.end()
        if self._is_open:
            closed = threading.Event()
            self._work.put(functools.partial(self._close, closed))
            in_time = closed.wait(max(0.05, until - time.monotonic() + 0.2)) and in_time
        self._work.put(None)
        return in_time

    def cancel_all(self) -> None:
        """Asks every run to end, because the program ends."""
        self._runs.cancel_all()

    def _close(self, closed: threading.Event) -> None:
        try:
            self.box.close()
        except BaseException:
            log.exception("close failed")
        closed.set()

    def _say(self, name: str, body: Dict[str, Any]) -> None:
        if name == "event":
            self._runs.say_counts()
        self._lanes.data(name, body)
