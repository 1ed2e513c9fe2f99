"""The runs of one toolbox: their threads, their cancels and their ends. Read `Runs.start`, then `Runs._perform`."""

from __future__ import annotations

import concurrent.futures
import inspect
import logging
import os
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, List, Optional

from .box import Box
from .errors import Cancelled, ToolError, failure, failure_of
from .frames import to_json
from .host import Host
from .lanes import Lanes
from .ledger import Ledger
from .rates import Counts, Rate
from .run import Context, Run
from .stops import Stops

log = logging.getLogger("ovos_tools_program")
#: Threads for runs; more runs wait in a queue. Tools wait for the network most of their time.
MAX_THREADS = 64
#: Threads that wait for the next run.
MAX_SPARE = 4
#: What a frame has beside a result.
FRAME = 256


class Runs:
    """Begins runs on threads of their own, and says the end of each once."""

    def __init__(
        self, box: Box, lanes: Lanes, host: Host, stops: Stops, counts: Counts, opening: Dict[str, Any]
    ) -> None:
        self.host = host
        self.stops = stops
        self._box = box
        self._lanes = lanes
        self._counts = counts
        self._id: str = box.manifest["id"]
        self._max_result: int = opening.get("max_result_bytes", 8 << 20)
        self._max_queued: int = opening.get("max_queued", 16384)
        self._pid = os.getpid()
        self._ledger = Ledger(opening.get("stop_epoch", 0))
        self._progress = Rate(1000, 500)
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        #: Wakes a thread that waits for the next run, and how many do.
        self._wanted = threading.Condition(self._lock)
        self._spare = 0
        self._runs: Dict[int, Run] = {}
        self._queued: Deque[Run] = deque()
        #: Threads for runs, those of them that are inside a tool, and those whose run was abandoned.
        self._threads = 0
        self._inside = 0
        self._gone = 0
        #: Set while the toolbox is open.
        self.open = False

    # --- orders

    def start(self, body: Dict[str, Any]) -> None:
        """Begins a run, or says at once why it never will. Returns at once."""
        run = Run(self, body["run"], body["start"], bool(body.get("progress")))
        refusal: Optional[Dict[str, Any]] = None
        with self._lock:
            begins = self._ledger.begins(run.number)
            stale = self._ledger.is_stale(run.call.get("stop_epoch", 0))
            if stale:
                self._counts.add("stale_starts")
            if not self.open:
                refusal = {"lost": failure("ToolboxClosed", f"toolbox `{self._id}` is closed")}
            elif not begins or stale:
                refusal = {"cancelled": None}
            elif self._waiting() >= self._max_queued:
                refusal = {"error": failure("BusyError", f"{self._waiting()} starts wait already; try again later")}
            else:
                self._runs[run.number] = run
                if run.moves:
                    self._lanes.moving(self._moving())
                self._queued.append(run)
                self._spawn()
        if refusal is not None:
            self._finish(run, refusal)

    def cancel(self, number: int, starts: int, only_waiting: bool) -> None:
        """Asks a run to end; with `only_waiting`, one that has not begun. `starts` is how many starts were sent before."""
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
            elif self._box.abandons:
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
            self.say_counts()
            self._lanes.data("ended", {"run": number, "end": "cancelled"})
            self._box.abandoned(gone)

    def stopped(self, epoch: int) -> None:
        """A newer emergency stop is known."""
        with self._lock:
            self._ledger.stopped(epoch)

    def halted(self, subsystems: List[str]) -> None:
        """Takes the right to command from the motion that a halt ends, and asks it to end."""
        with self._lock:
            covered = [run for run in self._runs.values() if run.is_halted_by(subsystems)]
        for run in covered:
            run.cancel(halted=True)

    def halt_again(self, run: Run) -> None:
        """Halts what a run may have commanded while it was halted."""
        try:
            self.stops.again(run.subsystems or ["all"])
        except Exception as error:
            log.error("the second halt of %s failed: %s", run.subsystems, error)

    def progress(self, run: Run, progress: Dict[str, Any]) -> None:
        """Sends progress of a run that has not ended, if its caller wants any."""
        if not run.wants_progress or run.ended:
            return
        body = {"run": run.number, "progress": {key: one for key, one in progress.items() if one is not None}}
        if not (self._progress.allows() and self._lanes.data_or_drop("progress", body)):
            self._counts.add("dropped_progress")

    @property
    def busy(self) -> int:
        """How many runs have not ended."""
        with self._lock:
            return len(self._runs)

    def cancel_all(self) -> None:
        """Asks every run to end, because the program ends."""
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.cancel()

    def end(self, until: float) -> bool:
        """Takes no more starts, and waits until `until` for those under way. False if some had to be given up."""
        with self._lock:
            self.open = False
            self._spare = 0
            self._wanted.notify_all()
            waiting = list(self._queued)
            self._queued.clear()
        for run in waiting:
            self._finish(run, {"cancelled": None})
        with self._idle:
            in_time = self._idle.wait_for(lambda: not self._runs, max(0.0, until - time.monotonic()))
            left = list(self._runs.values())
        for run in left:
            if run.end_once():
                lost = {"lost": failure("ToolboxClosed", f"toolbox `{self._id}` was closed while it ran")}
                self._lanes.data("ended", {"run": run.number, "end": lost})
        return in_time

    # --- threads

    def _waiting(self) -> int:
        """How many starts wait for a thread: not those that a thread is about to take, or a new one could. Under the lock."""
        free = self._threads - self._inside + max(0, MAX_THREADS - (self._threads - self._gone))
        return max(0, len(self._queued) - free)

    def _spawn(self) -> None:
        """Has a thread take what is queued: one that waits, or a new one. Under the lock."""
        if self._spare:
            self._spare -= 1
            self._wanted.notify()
        elif self._threads - self._gone < MAX_THREADS:
            self._threads += 1
            threading.Thread(target=self._serve_runs, name=f"run-{self._id}", daemon=True).start()

    def _serve_runs(self) -> None:
        while True:
            run = self._next()
            if run is None:
                return
            self._perform(run)
            with self._lock:
                self._inside -= 1

    def _next(self) -> Optional[Run]:
        """The run that this thread performs next; None if it is to end. A few wait: to start a thread takes longer."""
        with self._lock:
            while self.open and not self._queued and self._spare < MAX_SPARE:
                self._spare += 1
                self._wanted.wait()
            if not self._queued or self._threads - self._gone > MAX_THREADS:
                self._threads -= 1
                return None
            self._inside += 1
            return self._queued.popleft()

    def _perform(self, run: Run) -> None:
        try:
            if run.cancelled.is_set():
                raise Cancelled()
            action = run.action
            result = self._box.perform(Context(run), action.get("name", ""), action.get("params") or {})
            if inspect.isawaitable(result):
                result = self._await(run, result)
            end = {"cancelled": None} if run.was_halted else {"output": result}
        except (Cancelled, concurrent.futures.CancelledError):
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
        # Imported here because it takes 7 MB in each of the two processes.
        import asyncio

        from .loop import event_loop

        async def shell() -> Any:
            run.task = asyncio.current_task()
            if run.cancelled.is_set():
                raise asyncio.CancelledError()
            return await awaitable

        return asyncio.run_coroutine_threadsafe(shell(), event_loop()).result()

    # --- ends

    def _finish(self, run: Run, end: Dict[str, Any]) -> None:
        """Says the end of a run, once. `end` has one key: output, error, lost or cancelled."""
        body = self._ending(run, end)
        first = run.end_once()
        with self._idle:
            if run.abandoned:
                self._gone -= 1
            known = self._runs.pop(run.number, None) is not None
            if known and run.moves:
                # Under the lock, as in `start`: the guard must not hear the older number last.
                self._lanes.moving(self._moving())
            self._idle.notify_all()
        if first:
            self.say_counts()
            self._lanes.data_raw("ended", body)
        else:
            self._counts.add("late_completions")

    def _ending(self, run: Run, end: Dict[str, Any]) -> bytes:
        limit = self._max_result
        said: Any = "cancelled" if "cancelled" in end else end
        body: Dict[str, Any] = {"run": run.number, "end": said}
        if "output" in end and run.content:
            body["content"] = run.content
        try:
            text = to_json(body)
        except (ValueError, TypeError, RecursionError) as error:
            return to_json({"run": run.number, "end": {"error": unwritable(error)}})
        if len(text) > limit + FRAME:
            problem = failure("ResultTooLarge", f"the result has {len(text)} bytes; at most {limit} are allowed")
            return to_json({"run": run.number, "end": {"error": problem}})
        return text

    def _moving(self) -> int:
        return sum(run.moves for run in self._runs.values())

    def say_counts(self) -> None:
        """Says what was dropped, if that has changed."""
        counts = self._counts.take_changed()
        if counts is not None:
            self._lanes.data("counts", counts)


def unwritable(error: BaseException) -> Dict[str, Any]:
    """Why something could not be written as JSON. NaN has the text of the reference."""
    if isinstance(error, RecursionError):
        return failure("ValueError", "the result is nested too deeply")
    if str(error).startswith("Out of range float values"):
        return failure("ValueError", "Out of range float values are not JSON compliant")  # Python 3.13 adds the value
    return failure(type(error).__name__, f"the result is not JSON: {error}")
