"""The process that runs a toolbox's code: its two lanes, and the threads that read them. Read `Program.run`."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from typing import Any, Callable, Dict, NoReturn, Optional

from . import frames
from .box import Box
from .ending import ENDING
from .errors import failure_of
from .lane import Lane
from .logs import ForwardingHandler
from .served import Served

log = logging.getLogger("ovos_tools_program")
#: What a program that is left alone by the service takes for its end, in seconds.
LEAVE = 1.2
#: How long the process may live after its data socket ended.
GUARD_LATE = 4.0

MakeBox = Callable[[str], Box]


class Program:
    """Serves toolboxes over a data socket and a control socket."""

    def __init__(
        self, make: MakeBox, own_id: Optional[str], data: socket.socket, control: socket.socket, guarded: bool,
        end: Callable[[int], Any] = os._exit,
    ) -> None:
        """`own_id` is the id of the only toolbox, or None for a program with the feature `toolboxes`."""
        self._end = end
        self._make = make
        self._own_id = own_id
        self._guarded = guarded
        self._data = Lane(data, "data")
        self._control = Lane(control, "control")
        self._served: Dict[str, Served] = {}
        #: Emergency stops that became known before their toolbox was opened.
        self._epochs: Dict[str, int] = {}
        self._lock = threading.Lock()
        self._leaving = False
        self._ending = False

    def run(self) -> NoReturn:
        """Serves as a process of its own, until the service closes the program or is gone."""
        _keep_from_children(self._data.connection, self._control.connection)
        self._forward_logs()
        if self._guarded:
            # The guard decides what a signal means; a handler, unlike SIG_IGN, is not inherited by programs that tools start.
            for number in ENDING:
                signal.signal(number, lambda *_: None)
        else:
            for number in ENDING:
                signal.signal(number, lambda came, _frame: self._start_leaving(signal.Signals(came).name))
        self.serve()
        time.sleep(GUARD_LATE)
        os._exit(70)

    def serve(self) -> None:
        """Reads both lanes until the data socket ends."""
        threading.Thread(target=self._read_control, name="control", daemon=True).start()
        reason = self._read(self._data.connection, "data", frames.MAX_DATA, self._order)
        if not self._guarded:
            self._start_leaving(reason)

    def exit(self, status: int) -> None:
        """Ends the process after what waits for the service is written."""
        self._ending = True
        self._data.flush(0.3)
        self._control.flush(0.1)
        sys.stdout.flush()
        sys.stderr.flush()
        self._end(status)

    @property
    def served(self) -> Dict[str, Served]:
        """The toolboxes that are open or opening, by id."""
        with self._lock:
            return dict(self._served)

    # --- reading

    def _read(self, connection: socket.socket, lane: str, limit: int, take: Callable[[frames.Frame], None]) -> str:
        """Reads orders until the end, and says why it ended."""
        try:
            for frame in frames.read_all(connection, "order", limit):
                try:
                    take(frame)
                except (KeyError, TypeError, AttributeError) as error:
                    raise frames.FrameError(f"the order `{frame.name}` has a wrong body: {error!r}") from error
                except frames.FrameError:
                    raise
                except Exception as error:
                    # Such as no thread to be had. The lane lives on: a halt must still be read.
                    print(f"the order `{frame.name}` was not carried out: {error!r}", file=sys.stderr, flush=True)
            return f"the {lane} socket ended"
        except (frames.FrameError, OSError) as error:
            if not self._ending:
                print(f"the {lane} socket: {error}", file=sys.stderr, flush=True)
            return str(error)

    def _read_control(self) -> None:
        reason = self._read(self._control.connection, "control", frames.MAX_CONTROL, self._control_order)
        if self._guarded:
            self._end(70)  # the guard is gone, and with it the right to move anything
        self._start_leaving(reason)

    def _order(self, frame: frames.Frame) -> None:
        name = frame.name
        toolbox = self._own_id or frame.toolbox
        if name == "close" and (self._own_id or toolbox is None):
            threading.Thread(target=self._close_all, args=(frame.body["seq"],), daemon=True).start()
            return
        if toolbox is None:
            return
        if name == "open":
            self._open(toolbox, frame.body)
            return
        served = self._served.get(toolbox)
        if served is None:
            if name == "close":
                _Lanes(self, toolbox).data("closed", {"seq": frame.body["seq"], "in_time": True})
            return
        if name == "close":
            threading.Thread(target=self._close_one, args=(toolbox, served, frame.body["seq"]), daemon=True).start()
        else:
            served.order(name, frame.body)

    def _open(self, toolbox: str, body: Dict[str, Any]) -> None:
        lanes = _Lanes(self, toolbox)
        try:
            box = self._make(toolbox)
        except Exception as error:
            lanes.data("opened", {"seq": body["seq"], "answer": {"error": failure_of(error)}})
            return
        with self._lock:
            # The control lane may be faster than the data lane.
            newest = max(body.get("stop_epoch") or 0, self._epochs.pop(toolbox, 0))
            self._served[toolbox] = Served(box, lanes, {**body, "stop_epoch": newest})

    def _control_order(self, frame: frames.Frame) -> None:
        name, body = frame.name, frame.body
        if name in ("beat", "ping"):
            self._control.send(frames.encode("notice", "beat" if name == "beat" else "pong", body))
        elif name == "leave":
            self._start_leaving(body["reason"], body["moved"])
        else:
            toolbox = self._own_id or frame.toolbox
            if toolbox is None:
                return
            with self._lock:
                served = self._served.get(toolbox)
                if served is None and name in ("epoch", "halt"):
                    self._epochs[toolbox] = max(self._epochs.get(toolbox, 0), body.get("stop_epoch") or 0)
            if served is not None:
                served.control(name, body)
            elif name in ("halt", "resume"):
                # Nothing is open yet, so nothing moves.
                notice = {"halt": "halted", "resume": "resumed"}[name]
                _Lanes(self, toolbox).control(notice, {"seq": body["seq"], "answer": {"ok": None}})

    # --- the end

    def _close_one(self, toolbox: str, served: Served, seq: int) -> None:
        in_time = served.close()
        with self._lock:
            if self._served.get(toolbox) is served:
                del self._served[toolbox]
        self._data.send(frames.encode("notice", "closed", {"seq": seq, "in_time": in_time}, toolbox))

    def _close_all(self, seq: int) -> None:
        done = [True]

        def close(served: Served) -> None:
            done.append(served.close())

        threads = [
            threading.Thread(target=close, args=(one,), daemon=True) for one in self.served.values()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._data.send(frames.encode("notice", "closed", {"seq": seq, "in_time": all(done)}))
        self.exit(0)

    def _start_leaving(self, reason: str, moved: Optional[bool] = None) -> None:
        with self._lock:
            if self._leaving:
                return
            self._leaving = True
        threading.Thread(target=self._leave, args=(reason, moved), daemon=True).start()

    def _leave(self, reason: str, moved: Optional[bool]) -> None:
        """Closes everything because the service is gone. With a guard, the motion is halted already."""
        threads = []
        for served in self.served.values():
            if moved:
                served.host.latched(f"the program ended: {reason}")
            served.cancel_all()
            threads.append(threading.Thread(target=served.close, args=(LEAVE,), daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LEAVE)
        self.exit(0)

    def _forward_logs(self) -> None:
        def say(line: Dict[str, Any]) -> bool:
            return self._data.send_or_drop(frames.encode("notice", "log", line))

        def dropped() -> None:
            for served in self.served.values():
                served.counts.add("dropped_logs")

        logging.getLogger().addHandler(ForwardingHandler(say, dropped))
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(line_buffering=True, errors="backslashreplace")


class _Lanes:
    """The lanes, for the notices of one toolbox."""

    def __init__(self, program: Program, toolbox: Optional[str]) -> None:
        self._program = program
        self._named = None if program._own_id else toolbox

    def data(self, name: str, body: Any) -> None:
        self._program._data.send(frames.encode("notice", name, body, self._named))

    def data_raw(self, name: str, body: bytes) -> None:
        self._program._data.send(frames.encode_raw("notice", name, body, self._named))

    def data_or_drop(self, name: str, body: Any) -> bool:
        return self._program._data.send_or_drop(frames.encode("notice", name, body, self._named))

    def control(self, name: str, body: Any) -> None:
        self._program._control.send(frames.encode("notice", name, body, self._named))

    def moving(self, runs: int) -> None:
        self._tell("moving", {"runs": runs})

    def opening(self, body: Dict[str, Any]) -> None:
        self._tell("opening", {"config": body.get("config") or {}, "silence_ms": body.get("silence_ms", 500)})

    def opened(self, functions: Dict[str, bool]) -> None:
        self._tell("opened", {"functions": functions})

    def _tell(self, name: str, body: Any) -> None:
        """Tells the guard, which keeps it from the service."""
        if self._program._guarded:
            self._program._control.send(frames.encode("notice", name, body))


def _keep_from_children(*connections: socket.socket) -> None:
    """Processes that a tool starts or forks get neither socket, for the service waits for their end; and end by SIGTERM.

    SIGTERM is held back during a fork: sent right after it, it would meet this process's handler in the copy.
    """
    for connection in connections:
        connection.set_inheritable(False)
    numbers = [connection.fileno() for connection in connections]
    thread = threading.local()

    def before() -> None:
        thread.mask = signal.pthread_sigmask(signal.SIG_BLOCK, set(ENDING))

    def in_parent() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, thread.mask)

    def in_child() -> None:
        null = os.open(os.devnull, os.O_RDWR)
        for number in numbers:
            os.dup2(null, number, inheritable=False)
        os.close(null)
        for number in ENDING:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, thread.mask)

    os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)
