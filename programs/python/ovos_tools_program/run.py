"""One run of one action, from its start to its one end, and what its tool sees of it."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, TypeVar

from .errors import Cancelled, ToolError

if TYPE_CHECKING:
    import asyncio

    from .runs import Runs

T = TypeVar("T")
#: Effects that move something.
MOVING = ("motion", "safe")
MAX_CONTENT = 8


def covers(halted: List[str], subsystem: str) -> bool:
    """Whether a halt of these subsystems reaches a subsystem. `all` is everything, `unit/all` everything of a unit."""
    unit = subsystem.rpartition("/")[0]
    return any(one in ("all", subsystem) or (unit and one == f"{unit}/all") for one in halted)


class Run:
    """A run that has not ended."""

    def __init__(self, runs: Runs, number: int, start: Dict[str, Any], wants_progress: bool) -> None:
        action = start.get("action") or {}
        self.runs = runs
        self.number = number
        self.call: Dict[str, Any] = start.get("call") or {}
        self.action: Dict[str, Any] = action
        self.inputs: Dict[str, Any] = start.get("inputs") or {}
        self.effect: str = action.get("effect") or "motion"
        self.subsystems: List[str] = action.get("subsystems") or []
        self.wants_progress = wants_progress
        self.began = time.monotonic()
        #: Set when the run is to end.
        self.cancelled = threading.Event()
        self.content: List[Dict[str, Any]] = []
        #: Set when it was answered although its thread goes on.
        self.abandoned = False
        self.task: Optional[asyncio.Future[Any]] = None
        self._lock = threading.Lock()
        self._ended = False
        self._halted = False
        self._commanding = 0

    @property
    def moves(self) -> bool:
        """Whether it moves something."""
        return self.effect in MOVING

    def is_halted_by(self, subsystems: List[str]) -> bool:
        """Whether a halt ends it: motion alone; a `safe` action goes on."""
        if self.effect != "motion":
            return False
        return "all" in subsystems or any(covers(subsystems, one) for one in self.subsystems)

    def cancel(self, halted: bool = False) -> None:
        """Asks it to end, and takes away its right to command."""
        with self._lock:
            self._halted = self._halted or halted
            self.cancelled.set()
        task = self.task
        if task is not None:
            task.get_loop().call_soon_threadsafe(task.cancel)

    def end_once(self) -> bool:
        """True for the first who ends it."""
        with self._lock:
            first, self._ended = not self._ended, True
            return first

    @property
    def ended(self) -> bool:
        """Whether its end was said."""
        return self._ended

    @property
    def was_halted(self) -> bool:
        """Whether a halt covered it."""
        return self._halted

    def command(self, send: Callable[[], T]) -> T:
        """Calls `send` unless the run was cancelled or halted. If it is halted during that, it is halted once more."""
        with self._lock:
            if self.cancelled.is_set() or self._ended:
                raise Cancelled()
            self._commanding += 1
        try:
            return send()
        finally:
            with self._lock:
                self._commanding -= 1
                halted = self._halted or (self.cancelled.is_set() and self.effect == "motion")
            if halted:
                self.runs.halt_again(self)


class Context:
    """What a tool sees of its run. A tool gets it by a parameter that is annotated with this class."""

    def __init__(self, run: Run) -> None:
        self._run = run
        #: The call: `call_id`, `toolbox_id`, `tool`, and, if known, `session_id`, `lang` and `source`.
        self.call: Dict[str, Any] = run.call
        #: The outputs of the actions that this one depends on, by their id.
        self.inputs: Dict[str, Any] = run.inputs
        #: The name of the action, and the subsystems that it uses.
        self.action: str = run.action.get("name", "")
        self.subsystems: List[str] = run.subsystems

    @property
    def latched(self) -> bool:
        """Whether the toolbox is in emergency stop. A `safe` tool must not move anything then."""
        return bool(self.call.get("latched")) or self._run.runs.stops.stopped

    @property
    def operator(self) -> bool:
        """Whether the caller is an operator."""
        return bool(self.call.get("operator"))

    @property
    def cancelled(self) -> bool:
        """Whether the run is to end."""
        return self._run.cancelled.is_set()

    def check(self) -> None:
        """Raises Cancelled if the run is to end. Call it in loops."""
        if self.cancelled:
            raise Cancelled()

    def wait(self, seconds: float) -> None:
        """Sleeps. Raises Cancelled as soon as the run is to end. For tools that are not `async`."""
        if self._run.cancelled.wait(seconds):
            raise Cancelled()

    def command(self, send: Callable[[], T]) -> T:
        """Sends one command to a machine: calls `send`, or raises Cancelled if the run was cancelled or halted.

        Every command that moves something goes through it, so that none follows the one that ended the motion.
        """
        return self._run.command(send)

    def progress(self, fraction: Optional[float] = None, message: Optional[str] = None, data: Any = None) -> None:
        """Tells the caller how far it is. `fraction` is 0.0 to 1.0. May be lost."""
        self._run.runs.progress(self._run, {"fraction": fraction, "message": message, "data": data})

    def show(self, kind: str, mime_type: str, data: bytes, title: Optional[str] = None) -> None:
        """Returns a picture or other media beside the result. `kind` is `image`, `audio`, `text` or `resource`.

        Does nothing if the caller asks for no content. At most 8 items.
        """
        folder = self.call.get("content_dir")
        if not folder:
            return
        if len(self._run.content) >= MAX_CONTENT:
            raise ToolError("ValueError", f"a run shows at most {MAX_CONTENT} items of content")
        item: Dict[str, Any] = {"type": kind, "mime_type": mime_type}
        if title:
            item["title"] = title
        name = f"{self._run.number}-{len(self._run.content)}-{os.urandom(8).hex()}"
        with open(os.path.join(folder, name), "xb") as file:
            file.write(data)
        item["path"] = name
        self._run.content.append(item)

    def request(self, topic: str, data: Optional[Dict[str, Any]] = None, timeout: float = 3.0) -> Any:
        """Asks the bus and waits for the answer. The class's `requests` has to name the topic. Raises ToolError."""
        return self._run.runs.host.request(topic, data, timeout)
