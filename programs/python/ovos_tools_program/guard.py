"""A small parent of the process that runs a toolbox's code. It serves the control lane by itself.

The user's code can hold up every thread of its process, by a call into C that keeps Python's lock. The guard runs none of
that code: it answers beats, passes on every other order of the control lane, and watches. If a halt is not carried out in
time it kills the user's process and brings the machine to rest in a fresh one; so it does when the service is silent or gone
and the user's process does not halt. It has one thread and never waits for anything but all of its sockets at once.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import select
import signal
import socket
import sys
import time
from typing import Any, Dict, NoReturn, Optional, Tuple

from . import frames
from .end import End
from .ending import ENDING
from .safe_stop import SafeStop, stop_safely

#: A halt that the user's process has not answered after this time is not carried out, in seconds. The service waits 200 ms.
HALT = 0.15
#: A halt of the guard's own, because the service is gone.
OWN_HALT = 0.3
#: How long the user's process may take to close once everything is halted, and a safe stop in a fresh process.
LEAVE = 1.7
SAFE_STOP = 1.8
#: A user's process that answers nothing for so long hangs, in seconds.
HANGS = 10.0
#: The exit status after the user's process was killed because it did not answer.
KILLED = 70
#: The `seq` of the guard's own halt.
_OWN_SEQ = -1

SignalSockets = Tuple[socket.socket, socket.socket]


def split(data: socket.socket, control: socket.socket, safe_stop: Optional[SafeStop]) -> socket.socket:
    """Waits for the first order and forks. Returns in the user's process, with its control socket; not in the guard."""
    if not data.recv(1, socket.MSG_PEEK):
        os._exit(0)  # the service only wanted to know who this is
    sys.stdout.flush()
    sys.stderr.flush()
    ours, theirs = socket.socketpair()
    signal_sockets = _signals()
    guard = os.getpid()
    # What was imported so far is shared with the child, as long as the garbage collector does not write to it.
    gc.freeze()
    child = os.fork()
    if child == 0:
        _reset(signal_sockets)
        ours.close()
        control.close()
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != guard:
            os._exit(KILLED)
        return theirs
    theirs.close()
    Guard(data, control, ours, child, signal_sockets, safe_stop).run()


class Guard:
    """The parent's loop."""

    def __init__(
        self, data: socket.socket, control: socket.socket, link: socket.socket, child: int, signal_sockets: SignalSockets,
        safe_stop: Optional[SafeStop],
    ) -> None:
        self._data = data
        self._control = End(control)
        self._link = End(link)
        self._child = child
        self._signal_sockets = signal_sockets
        self._wake = signal_sockets[0]
        self._safe_stop = safe_stop
        self._status: Optional[int] = None
        self._config: Dict[str, Any] = {}
        self._silence = 0.5
        self._functions: Dict[str, bool] = {}
        self._moving = 0
        self._heard = time.monotonic()
        #: When the child was asked whether it lives, if it has not answered yet; and when it was asked last.
        self._asked: Optional[float] = None
        self._asked_last = 0.0
        self._halts: Dict[int, float] = {}
        self._waited = 0.0
        self._own_halt: Optional[bool] = None
        self._leaving = False

    def run(self) -> NoReturn:
        """Serves until either side ends. Does not return."""
        while True:
            gone = self._step(self._next())
            if self._status is not None or self._link.ended:
                self._end_with_child(bool(gone))
            if gone:
                self._service_is_gone(gone)
            now = time.monotonic()
            if self._moving and now - self._heard > self._silence:
                self._service_is_gone(f"the service said nothing for {self._silence * 1000:.0f} ms while something moved")
            if self._late_halt(now):
                self._kill(f"it did not carry out a halt within {HALT * 1000:.0f} ms")
            if self._asked is not None and now - self._asked > HANGS:
                self._kill(f"it answered nothing for {HANGS:.0f} s")

    # --- one turn

    def _next(self) -> Optional[float]:
        """Seconds until something is late; None if nothing can be."""
        times = list(self._halts.values())
        if self._moving:
            times.append(self._heard + self._silence)
        if self._asked is not None:
            times.append(self._asked + HANGS)
        return max(0.001, min(times) - time.monotonic()) if times else None

    def _step(self, seconds: Optional[float]) -> str:
        """Waits for a socket, passes on what came, and says why the service is gone, if it is."""
        poll = select.poll()
        if not self._leaving:
            poll.register(self._data, select.POLLRDHUP)
        poll.register(self._wake, select.POLLIN)
        for end in (self._control, self._link):
            if not end.ended:
                poll.register(end.connection, select.POLLIN | (select.POLLOUT if end.waiting else 0))
        ready = dict(poll.poll(None if seconds is None else seconds * 1000 + 1))
        self._control.flush()
        self._link.flush()
        gone = ""
        if self._wake.fileno() in ready:
            came = self._wake.recv(4096)
            for number in ENDING:
                if number in came:
                    gone = number.name
        if self._status is None:
            done, status = os.waitpid(self._child, os.WNOHANG)
            self._status = status if done else None
        if self._data.fileno() in ready:
            gone = "the data socket ended"
        if self._control.connection.fileno() in ready:
            for text in self._control.read():
                self._order(text)
        if self._link.connection.fileno() in ready:
            for text in self._link.read():
                self._notice(text)
        return "the control socket ended" if self._control.ended else gone

    def _order(self, text: bytes) -> None:
        self._heard = time.monotonic()
        frame = frames.decode(text, "order")
        if frame.name == "beat":
            self._control.send(frames.encode("notice", "beat", frame.body))
            # Something is under way, so it is worth knowing whether the child lives.
            if self._asked is None and self._heard - self._asked_last > 1:
                self._asked = self._asked_last = self._heard
                self._link.send(frames.encode("order", "ping"))
            return
        if frame.name == "halt":
            if not self._halts:
                self._waited = self._starved()
            self._halts[frame.body["seq"]] = self._heard + HALT
        self._link.send_json(text)

    def _notice(self, text: bytes) -> None:
        self._asked = None
        frame = frames.decode(text, "notice")
        if frame.name == "moving":
            if frame.body["runs"] and not self._moving:
                self._heard = time.monotonic()
            self._moving = frame.body["runs"]
        elif frame.name == "opening":
            self._config = frame.body["config"]
            self._silence = frame.body["silence_ms"] / 1000
        elif frame.name == "opened":
            self._functions = frame.body["functions"] or {}
        elif frame.name == "halted" and frame.body["seq"] == _OWN_SEQ:
            self._own_halt = "ok" in frame.body["answer"]
        elif frame.name != "pong":
            if frame.name == "halted":
                self._halts.pop(frame.body["seq"], None)
            self._control.send_json(text)

    def _late_halt(self, now: float) -> bool:
        """Whether a halt is late. Time in which the child's threads waited for a processor is added, as the service does."""
        if not self._halts or now < min(self._halts.values()):
            return False
        extra = min(self._starved() - self._waited, 2 * HALT)
        return now > min(self._halts.values()) + max(0.0, extra)

    def _starved(self) -> float:
        """Seconds for which the child's threads have waited for a processor."""
        total = 0
        try:
            for task in os.listdir(f"/proc/{self._child}/task"):
                with open(f"/proc/{self._child}/task/{task}/schedstat", encoding="ascii") as file:
                    total += int(file.read().split()[1])
        except (OSError, IndexError, ValueError):
            pass
        return total / 1e9

    # --- ends

    def _end_with_child(self, alone: bool) -> NoReturn:
        """The user's process has ended: so does the guard, in the same way, for the service to see why.

        `alone` says that the service is gone as well, which otherwise starts the safe stop.
        """
        self._reap(1.0)
        self._drain()
        status = self._status or 0
        if alone and self._functions.get("safe_stop") and status != 0:
            self._stop_safely()
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else KILLED)

    def _service_is_gone(self, reason: str) -> NoReturn:
        """Rule 7: halt everything, close the toolbox, end."""
        self._leaving = True
        until = time.monotonic() + OWN_HALT + LEAVE
        moved = self._moving > 0
        if self._functions.get("halt"):
            halt = {"seq": _OWN_SEQ, "subsystems": ["all"], "emergency": True, "stop_epoch": None}
            self._link.send(frames.encode("order", "halt", halt))
            late = time.monotonic() + OWN_HALT
            while self._own_halt is None and time.monotonic() < late and self._status is None:
                self._step(late - time.monotonic())
            if not self._own_halt:
                self._kill(f"it did not halt after {reason}")
        self._link.send(frames.encode("order", "leave", {"reason": reason, "moved": moved}))
        while self._status is None and time.monotonic() < until:
            self._step(until - time.monotonic())
        self._kill_child()
        self._drain()
        os._exit(0)

    def _kill(self, why: str) -> NoReturn:
        """Ends a user's process that does not answer, and brings the machine to rest in a fresh one."""
        text = f"the toolbox's process was killed: {why}"
        print(text, file=sys.stderr, flush=True)
        self._kill_child()
        for seq in list(self._halts):
            answer = {"error": {"kind": "ToolboxCrashed", "message": text}}
            self._control.send(frames.encode("notice", "halted", {"seq": seq, "answer": answer}))
        # What it still commands must not follow the safe stop.
        self._reap(1.0)
        if self._functions.get("safe_stop"):
            self._stop_safely()
        os._exit(KILLED)

    def _stop_safely(self) -> None:
        """Runs the toolbox's `safe_stop` in a copy of this process, in which the toolbox was never opened."""
        if self._safe_stop is None:
            return
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            _reset(self._signal_sockets)
            os.setsid()
            signal.alarm(5)
            for connection in (self._data, self._control.connection, self._link.connection):
                connection.close()
            os._exit(stop_safely(self._safe_stop, self._config))
        until = time.monotonic() + SAFE_STOP
        while time.monotonic() < until:
            if os.waitpid(child, os.WNOHANG)[0]:
                return
            self._answer_while_stopping()
        print("the safe stop takes long; it goes on by itself for 5 s", file=sys.stderr, flush=True)

    def _answer_while_stopping(self) -> None:
        if self._control.ended:
            time.sleep(0.01)
            return
        poll = select.poll()
        poll.register(self._control.connection, select.POLLIN)
        poll.poll(10)
        for text in self._control.read():
            frame = frames.decode(text, "order")
            if frame.name == "beat":
                self._control.send(frames.encode("notice", "beat", frame.body))
            elif frame.name == "halt":
                message = "the toolbox's process was killed; a fresh one brings the machine to rest"
                answer = {"error": {"kind": "ToolboxCrashed", "message": message}}
                self._control.send(frames.encode("notice", "halted", {"seq": frame.body["seq"], "answer": answer}))
        self._control.flush()

    def _kill_child(self) -> None:
        # Once it was waited for, its number may be another process's.
        if self._status is None:
            os.kill(self._child, signal.SIGKILL)

    def _reap(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._status is None:
            done, status = os.waitpid(self._child, os.WNOHANG)
            if done:
                self._status = status
            elif time.monotonic() >= until:
                return
            else:
                time.sleep(0.005)

    def _drain(self) -> None:
        """Passes on what the user's process said last, as far as the service takes it at once."""
        for text in self._link.read():
            self._notice(text)
        self._control.flush()


def _signals() -> SignalSockets:
    """A socket that becomes readable when a signal that ends the program or SIGCHLD comes, and the one that Python writes to."""
    wake, written = socket.socketpair()
    wake.setblocking(False)
    written.setblocking(False)
    for number in (*ENDING, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
    return wake, written


def _reset(signal_sockets: SignalSockets) -> None:
    """Undoes `_signals` in a process that was forked."""
    signal.set_wakeup_fd(-1)
    for end in signal_sockets:
        end.close()
    for number in (*ENDING, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
