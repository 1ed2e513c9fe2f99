"""One toolbox, and the orders that concern it. Read `Served.order`, then `Served.control`."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import logging
import os
import queue
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Protocol

from .box import Box
from .errors import Cancelled, ToolError, failure, failure_of
from .frames import to_json
from .host import Host
from .ledger import Ledger
from .loop import event_loop
from .rates import Counts, Rate
from .run import Context, Run
from .stops import Stops

log = logging.getLogger("ovos_tools_program")
#: Threads for runs; more runs wait in a queue. Tools wait for the network most of their time.
MAX_THREADS = 64
#: Halts and resumes that may hang inside the toolbox at once.
MAX_HALTS = 16
#: Time between the last run that is given up at `close` and the limit of the service.
CLOSE_MARGIN = 0.8


class Lanes(Protocol):
    """Where a toolbox's notices go."""

    def data(self, name: str, body: Any) -> None: ...
    def data_raw(self, name: str, body: bytes) -> None: ...
    def data_or_drop(self, name: str, body: Any) -> bool: ...
    def control(self, name: str, body: Any) -> None: ...
    def moving(self, runs: int) -> None: ...
    def opening(self, body: Dict[str, Any]) -> None: ...
    def opened(self, functions: Dict[str, bool]) -> None: ...


class Served:
    """Serves one copy of a toolbox, from `open` to `closed`."""

    def __init__(self, box: Box, lanes: Lanes, opening: Dict[str, Any]) -> None:
        self.box = box
        self.lanes = lanes
        self.id: str = box.manifest["id"]
        self.stops = Stops(box.halt, box.resume)
        self.counts = Counts()
        self.host = Host(self._say, self.counts, opening.get("max_requests", 64))
        self.is_open = False
        self._pid = os.getpid()
        self._opening = opening
        self._ledger = Ledger(opening.get("stop_epoch", 0))
        self._progress = Rate(1000, 500)
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._runs: Dict[int, Run] = {}
        self._queued: Deque[Run] = deque()
        #: Threads for runs, those of them that are inside a tool, and those whose run was abandoned.
        self._threads = 0
        self._inside = 0
        self._gone = 0
        self._halts = 0
        self._closing = False
        self._messages: Deque[Dict[str, Any]] = deque(maxlen=opening.get("max_messages", 64))
        self._work: queue.Queue[Callable[[], None]] = queue.Queue()
        threading.Thread(target=self._serve_work, name=f"box-{self.id}", daemon=True).start()
        lanes.opening(opening)
        self._work.put(self._open)

    # --- orders

    def order(self, name: str, body: Dict[str, Any]) -> None:
        """An order of the data lane. Returns at once."""
        if name == "start":
            self._start(body)
        elif name == "response":
            self.host.answered(body["request"], body["answer"])
        elif name == "message":
            if len(self._messages) == self._messages.maxlen:
                self.counts.add("dropped_messages")
            self._messages.append(body)
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
            self.halt(body, functools.partial(self._told, "halted", body["seq"]))
        elif name == "resume":
            seen = self.stops.resume_begins()
            self._beside(functools.partial(self.stops.resume, seen), functools.partial(self._told, "resumed", body["seq"]))
        elif name == "epoch":
            with self._lock:
                self._ledger.stopped(body["stop_epoch"])
        elif name in ("cancel", "give_up"):
            self._cancel(body["run"], body["starts"], name == "give_up")

    def halt(self, body: Dict[str, Any], answer: Callable[[Dict[str, Any]], None]) -> None:
        """Halts on a thread of its own, and answers."""
        subsystems: List[str] = body["subsystems"]
        emergency = bool(body.get("emergency"))
        if emergency:
            self.stops.emergency_begins()
        with self._lock:
            if emergency:
                self._ledger.stopped(body.get("stop_epoch") or 0)
            covered = [run for run in self._runs.values() if run.is_halted_by(subsystems)]
        for run in covered:
            run.cancel(halted=True)
        self._beside(lambda: self.stops.halt(subsystems, emergency), answer)

    def halt_again(self, run: Run) -> None:
        """Halts what a run may have commanded while it was halted."""
        try:
            self.stops.again(run.subsystems or ["all"])
        except Exception as error:
            log.error("the second halt of %s failed: %s", run.subsystems, error)

    def _told(self, notice: str, seq: int, answer: Dict[str, Any]) -> None:
        self.lanes.control(notice, {"seq": seq, "answer": answer})

    # --- runs

    def _start(self, body: Dict[str, Any]) -> None:
        run = Run(self, body["run"], body["start"], bool(body.get("progress")))
        refusal: Optional[Dict[str, Any]] = None
        with self._lock:
            begins = self._ledger.begins(run.number)
            stale = self._ledger.is_stale(run.call.get("stop_epoch", 0))
            if stale:
                self.counts.add("stale_starts")
            if self._closing or not self.is_open:
                refusal = {"lost": failure("ToolboxClosed", f"toolbox `{self.id}` is closed")}
            elif not begins or stale:
                refusal = {"cancelled": None}
            elif self._waiting() >= self._opening.get("max_queued", 16384):
                refusal = {"error": failure("BusyError", f"{self._waiting()} starts wait already; try again later")}
            else:
                self._runs[run.number] = run
                if run.moves:
                    self.lanes.moving(self._moving())
                self._queued.append(run)
                self._spawn()
        if refusal is not None:
            self._finish(run, refusal)

    def _waiting(self) -> int:
        """How many starts wait for a thread: not those that a thread is about to take, or a new one could. Under the lock."""
        free = self._threads - self._inside + max(0, MAX_THREADS - (self._threads - self._gone))
        return max(0, len(self._queued) - free)

    def _spawn(self) -> None:
        """Starts a thread for what is queued. Under the lock."""
        if self._threads - self._gone < MAX_THREADS:
            self._threads += 1
            threading.Thread(target=self._serve_runs, name=f"run-{self.id}", daemon=True).start()

    def _serve_runs(self) -> None:
        while True:
            with self._lock:
                if not self._queued or self._threads - self._gone > MAX_THREADS:
                    self._threads -= 1
                    return
                run = self._queued.popleft()
                self._inside += 1
            self._perform(run)
            with self._lock:
                self._inside -= 1

    def _perform(self, run: Run) -> None:
        try:
            if run.cancelled.is_set():
                raise Cancelled()
            action = run.action
            result = self.box.perform(Context(run), action.get("name", ""), action.get("params") or {})
            if inspect.isawaitable(result):
                result = self._await(run, result)
            end = {"cancelled": None} if run.was_halted else {"output": result}
        except (Cancelled, asyncio.CancelledError, concurrent.futures.CancelledError):
            end = {"cancelled": None}
        except BaseException as error:
            if not isinstance(error, ToolError):
                log.debug("action `%s` failed", run.action.get("name"), exc_info=True)
            end = {"error": failure_of(error)}
        if os.getpid() != self._pid:
            os._exit(0)  # the tool forked, and this is the copy
        if run.was_halted:
            self.halt_again(run)
        self._finish(run, end)

    def _await(self, run: Run, awaitable: Any) -> Any:
        async def shell() -> Any:
            run.task = asyncio.current_task()
            if run.cancelled.is_set():
                raise asyncio.CancelledError()
            return await awaitable

        return asyncio.run_coroutine_threadsafe(shell(), event_loop()).result()

    def _finish(self, run: Run, end: Dict[str, Any]) -> None:
        """Says the end of a run, once. `end` has one key: output, error, lost or cancelled."""
        body = self._ending(run, end)
        first = run.end_once()
        with self._idle:
            if run.abandoned:
                self._gone -= 1
            moved = run.moves and self._runs.pop(run.number, None) is not None
            self._runs.pop(run.number, None)
            moving = self._moving()
            self._idle.notify_all()
        if first:
            self._say_counts()
            self.lanes.data_raw("ended", body)
        else:
            self.counts.add("late_completions")
        if moved:
            self.lanes.moving(moving)

    def _ending(self, run: Run, end: Dict[str, Any]) -> bytes:
        limit = self._opening.get("max_result_bytes", 8 << 20)
        said: Any = "cancelled" if "cancelled" in end else end
        body: Dict[str, Any] = {"run": run.number, "end": said}
        if "output" in end and run.content:
            body["content"] = run.content
        try:
            text = to_json(body)
        except (ValueError, TypeError, RecursionError) as error:
            return to_json({"run": run.number, "end": {"error": _unwritable(error)}})
        if len(text) > limit + 256:
            problem = failure("ResultTooLarge", f"the result has {len(text)} bytes; at most {limit} are allowed")
            return to_json({"run": run.number, "end": {"error": problem}})
        return text

    def _cancel(self, number: int, starts: int, only_waiting: bool) -> None:
        abandoned = False
        with self._lock:
            run = self._runs.get(number)
            if run is None:
                self._ledger.cancelled(number, starts)
                return
            waits = run in self._queued
            if waits:
                self._queued.remove(run)
            elif only_waiting:
                return
            elif self.box.abandons:
                abandoned = run.end_once()
                if abandoned:
                    run.abandoned = True
                    self._gone += 1
                    del self._runs[number]
                    self._idle.notify_all()
                    if self._queued:
                        self._spawn()
                gone = self._gone
        run.cancel()
        if waits:
            self._finish(run, {"cancelled": None})
        elif abandoned:
            self._say_counts()
            self.lanes.data("ended", {"run": number, "end": "cancelled"})
            self.box.abandoned(gone)

    def progress(self, run: Run, progress: Dict[str, Any]) -> None:
        """Sends progress of a run that has not ended, if its caller wants any."""
        if not run.wants_progress or run.ended:
            return
        body = {"run": run.number, "progress": {key: one for key, one in progress.items() if one is not None}}
        if not (self._progress.allows() and self.lanes.data_or_drop("progress", body)):
            self.counts.add("dropped_progress")

    def _moving(self) -> int:
        return sum(run.moves for run in self._runs.values())

    @property
    def busy(self) -> int:
        """How many runs have not ended."""
        with self._lock:
            return len(self._runs)

    # --- questions, one after the other

    def _serve_work(self) -> None:
        while True:
            self._work.get()()

    def _open(self) -> None:
        try:
            self.box.open(self._opening.get("config") or {}, self.host)
            functions = self.box.functions()
            if self._closing:
                self.box.close()
                raise ToolError("ToolboxClosed", f"toolbox `{self.id}` was closed while it opened")
            self.is_open = True
            answer: Dict[str, Any] = {"ok": functions}
        except BaseException as error:
            functions = {}
            answer = {"error": failure_of(error)}
            log.debug("open failed", exc_info=True)
        self.lanes.opened(functions)
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
            text = to_json({"seq": seq, "answer": {"error": _unwritable(error)}})
        if len(text) > limit + 256:
            problem = failure("ResultTooLarge", f"the answer has {len(text)} bytes; at most {limit} are allowed")
            text = to_json({"seq": seq, "answer": {"error": problem}})
        self.lanes.data_raw(notice, text)

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
        else:
            threading.Thread(target=job, name=f"halt-{self.id}", daemon=True).start()

    # --- the end

    def close(self, limit: Optional[float] = None) -> bool:
        """Takes no more work, waits for what is under way, and closes the toolbox. False if that took too long."""
        until = time.monotonic() + (limit or max(0.1, self._opening.get("close_ms", 10000) / 1000 - CLOSE_MARGIN))
        with self._lock:
            self._closing = True
            waiting = list(self._queued)
            self._queued.clear()
        for run in waiting:
            self._finish(run, {"cancelled": None})
        with self._idle:
            in_time = self._idle.wait_for(lambda: not self._runs, max(0.0, until - time.monotonic()))
            left = list(self._runs.values())
        for run in left:
            if run.end_once():
                lost = {"lost": failure("ToolboxClosed", f"toolbox `{self.id}` was closed while it ran")}
                self.lanes.data("ended", {"run": run.number, "end": lost})
        self.host.end()
        closed = threading.Event()
        if self.is_open:
            self._work.put(lambda: self._close(closed))
            in_time = closed.wait(max(0.05, until - time.monotonic() + 0.2)) and in_time
        return in_time

    def cancel_all(self) -> None:
        """Asks every run to end, because the program ends."""
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.cancel()

    def _close(self, closed: threading.Event) -> None:
        try:
            self.box.close()
        except BaseException:
            log.exception("close failed")
        closed.set()

    # --- notices

    def _say(self, name: str, body: Dict[str, Any]) -> None:
        if name == "event":
            self._say_counts()
        self.lanes.data(name, body)

    def _say_counts(self) -> None:
        counts = self.counts.take_changed()
        if counts is not None:
            self.lanes.data("counts", counts)


def _unwritable(error: BaseException) -> Dict[str, Any]:
    """Why something could not be written as JSON. NaN has the text of the reference."""
    if isinstance(error, RecursionError):
        return failure("ValueError", "the result is nested too deeply")
    if str(error).startswith("Out of range float values"):
        return failure("ValueError", "Out of range float values are not JSON compliant")  # Python 3.13 adds the value
    return failure(type(error).__name__, f"the result is not JSON: {error}")
