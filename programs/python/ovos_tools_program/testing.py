"""Drives a toolbox through the real frames, without a service. For tests.

    with Harness(Greeter) as greeter:
        assert greeter.call("greet", {"name": "Ada"})["text"] == "Hello, Ada!"

`Harness(Class)` serves the toolbox in threads of the test; `Harness.of_command([...])` starts the program as the service
does, with its guard. Nothing is validated or converted on the way: that is the service's work.
"""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

from . import frames
from .main import CONTROL, DATA, hello_of
from .program import Program
from .toolbox import AuthorsBox

#: How long the harness waits for any answer, in seconds.
PATIENCE = 10.0
_ON_CONTROL = ("cancel", "give_up", "halt", "resume", "epoch", "beat")
Predicate = Callable[[frames.Frame], bool]


class Failed(AssertionError):
    """The toolbox answered with an error. `failure` has its `kind` and `message`."""

    def __init__(self, failure: Dict[str, Any]) -> None:
        super().__init__(f"{failure.get('kind')}: {failure.get('message')}")
        self.failure = failure


class Driver:
    """The service's side of a program's two sockets."""

    def __init__(self, data: socket.socket, control: socket.socket, process: Optional[subprocess.Popen[bytes]] = None) -> None:
        self.process = process
        #: Every notice that came, in the order in which it came.
        self.notices: List[frames.Frame] = []
        #: Plays the bus: topic to a function from the data to the answer.
        self.answers: Dict[str, Callable[[Dict[str, Any]], Any]] = {}
        self._sockets = {"data": data, "control": control}
        self._changed = threading.Condition()
        self._ended = 0
        self._seq = 0
        for lane in ("data", "control"):
            threading.Thread(target=self._read, args=(lane,), daemon=True).start()

    @classmethod
    def start(cls, command: Sequence[str], **options: Any) -> Driver:
        """Starts a program as the service does: its sockets are the descriptors 3 and 4."""
        (data, their_data), (control, their_control) = socket.socketpair(), socket.socketpair()
        numbers = their_data.fileno(), their_control.fileno()

        def place() -> None:
            high = [os.dup(os.dup(os.dup(number))) for number in numbers]
            os.dup2(high[0], DATA)
            os.dup2(high[1], CONTROL)
            os.closerange(CONTROL + 1, 256)

        # The descriptors 3 and 4 have to be passed by number, which `pass_fds` cannot do.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, close_fds=False, preexec_fn=place, start_new_session=True, **options
        )
        their_data.close()
        their_control.close()
        return cls(data, control, process)

    def next_seq(self) -> int:
        """A number for an order."""
        self._seq += 1
        return self._seq

    def send(self, name: str, body: Dict[str, Any], toolbox: Optional[str] = None) -> None:
        """Sends an order on its lane."""
        lane = "control" if name in _ON_CONTROL else "data"
        self._sockets[lane].sendall(frames.encode("order", name, body, toolbox))

    def wait(self, wanted: Predicate, seconds: float = PATIENCE) -> frames.Frame:
        """The first notice that is wanted, waiting for it. Fails past `seconds`."""
        until = time.monotonic() + seconds
        seen = 0
        with self._changed:
            while True:
                for frame in self.notices[seen:]:
                    if wanted(frame):
                        return frame
                seen = len(self.notices)
                left = until - time.monotonic()
                if left <= 0 or self._ended == 2:
                    what = "the program ended" if self._ended == 2 else f"no such notice within {seconds} s"
                    raise AssertionError(f"{what}; the last were {self.notices[-5:]}")
                self._changed.wait(left)

    def named(self, name: str, toolbox: Optional[str] = None) -> List[Any]:
        """The bodies of every notice of this name so far."""
        with self._changed:
            return [one.body for one in self.notices if one.name == name and one.toolbox == toolbox]

    def hang_up(self, lanes: Sequence[str] = ("data", "control")) -> None:
        """Ends the connection, as a service that is gone does."""
        for lane in lanes:
            try:
                self._sockets[lane].shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def end(self, seconds: float = PATIENCE) -> int:
        """Waits for the end of the program: its exit status."""
        status = 0
        if self.process is not None:
            try:
                status = self.process.wait(seconds)
            finally:
                if self.process.poll() is None:
                    self.process.kill()
                    self.process.wait()
        self.hang_up()
        return status

    def _read(self, lane: str) -> None:
        connection = self._sockets[lane]
        try:
            for frame in frames.read_all(connection, "notice", frames.MAX_DATA):
                with self._changed:
                    self.notices.append(frame)
                    self._changed.notify_all()
                if frame.name == "request":
                    self._answer(frame)
        except (OSError, frames.FrameError):
            pass
        connection.close()
        with self._changed:
            self._ended += 1
            self._changed.notify_all()

    def _answer(self, frame: frames.Frame) -> None:
        answer = self.answers.get(frame.body["topic"])
        if answer is None:
            problem = {"kind": "PermissionError", "message": f"no answer to {frame.body['topic']} in this test"}
            said: Dict[str, Any] = {"error": problem}
        else:
            said = {"ok": answer(frame.body["data"])}
        self.send("response", {"request": frame.body["request"], "answer": said}, frame.toolbox)


class Started:
    """A run that was started."""

    def __init__(self, harness: Harness, number: int) -> None:
        self._harness = harness
        self.number = number

    def wait(self, seconds: float = PATIENCE) -> Dict[str, Any]:
        """The body of its `ended`."""
        return self._harness.wait_for("ended", "run", self.number, seconds)

    def result(self, seconds: float = PATIENCE) -> Any:
        """Its output. Raises Failed; a cancelled one fails as `CancelledError`."""
        end = self.wait(seconds)["end"]
        if end == "cancelled":
            raise Failed({"kind": "CancelledError", "message": "the run was cancelled"})
        if "output" not in end:
            raise Failed(end.get("error") or end["lost"])
        return end["output"]

    def cancel(self) -> None:
        """Asks it to end."""
        self._harness.send("cancel", {"run": self.number, "starts": self._harness.starts})

    def progress(self) -> List[Dict[str, Any]]:
        """Its progress so far."""
        said = self._harness.driver.named("progress", self._harness.name)
        return [one["progress"] for one in said if one["run"] == self.number]


class Harness:
    """A toolbox that is open. Leaving its `with` closes it."""

    def __init__(self, toolbox: type, config: Optional[Dict[str, Any]] = None, **limits: Any) -> None:
        """Serves a class derived from Toolbox in threads of this process. `limits` are keys of `open`."""
        box = AuthorsBox(toolbox)
        (data, theirs), (control, their_control) = socket.socketpair(), socket.socketpair()

        def hang_up(_: int) -> None:
            theirs.close()
            their_control.close()

        program = Program(
            lambda _: AuthorsBox(toolbox), box.manifest["id"], theirs, their_control, guarded=False,
            end=hang_up,
        )
        theirs.sendall(frames.encode("notice", "hello", hello_of(box.manifest)))
        threading.Thread(target=program.serve, daemon=True).start()
        self._open(Driver(data, control), None, config, limits)

    @classmethod
    def of_command(cls, command: Sequence[str], config: Optional[Dict[str, Any]] = None, **limits: Any) -> Harness:
        """Starts a program and opens its only toolbox."""
        return cls.of_driver(Driver.start(command), None, config, **limits)

    @classmethod
    def of_driver(
        cls, driver: Driver, name: Optional[str], config: Optional[Dict[str, Any]] = None, **limits: Any
    ) -> Harness:
        """Opens a toolbox of a program; `name` is its id where the program has several."""
        harness = cls.__new__(cls)
        harness._open(driver, name, config, limits)
        return harness

    def _open(
        self, driver: Driver, name: Optional[str], config: Optional[Dict[str, Any]], limits: Dict[str, Any]
    ) -> None:
        self.driver = driver
        self.name = name
        self.starts = 0
        self.epoch = 0
        self.latched = False
        self.hello = driver.wait(lambda one: one.name == "hello").body
        opening = {
            "generation": 1, "config": config or {}, "stop_epoch": 0, "max_result_bytes": 8 << 20, "max_queued": 16384,
            "max_messages": 64, "max_requests": 64, "open_ms": 10000, "close_ms": 10000, "silence_ms": 500, **limits,
        }
        try:
            #: What `opened` said: `plan`, `conclude`, `message`, `halt`, `safe_stop`.
            self.functions: Dict[str, bool] = self.ask("open", "opened", opening)
        except Failed:
            self.close()
            raise

    def send(self, name: str, body: Dict[str, Any]) -> None:
        """Sends an order."""
        self.driver.send(name, body, self.name)

    def ask(self, order: str, notice: str, body: Optional[Dict[str, Any]] = None, seconds: float = PATIENCE) -> Any:
        """Sends an order with a `seq` and waits for its answer. Raises Failed."""
        seq = self.driver.next_seq()
        self.send(order, {"seq": seq, **(body or {})})
        answer = self.wait_for(notice, "seq", seq, seconds)["answer"]
        if "ok" not in answer:
            raise Failed(answer.get("error") or answer["lost"])
        return answer["ok"]

    def wait_for(self, notice: str, key: str, number: int, seconds: float = PATIENCE) -> Dict[str, Any]:
        """The body of the notice of this toolbox in which `key` is `number`, waiting for it."""

        def wanted(one: frames.Frame) -> bool:
            return one.name == notice and one.toolbox == self.name and bool(one.body[key] == number)

        body: Dict[str, Any] = self.driver.wait(wanted, seconds).body
        return body

    def tools(self) -> Dict[str, Dict[str, Any]]:
        """The tools by name."""
        return {one["name"]: one for one in self.ask("tools", "tools")["tools"]}

    def plan(self, tool: str, args: Dict[str, Any]) -> Optional[List[Dict[str, Any]]]:
        """The actions of a call; None if the tool has no plan."""
        planned = self.ask("plan", "planned", {"tool": tool, "args": args}) if self.functions.get("plan") else None
        return planned and planned["actions"]

    def start(self, name: str, params: Optional[Dict[str, Any]] = None, **more: Any) -> Started:
        """Starts an action. `more`: `effect`, `subsystems`, `inputs`, `progress`, and keys of the call."""
        self.starts += 1
        action = {
            "id": name, "name": name, "params": params or {}, "subsystems": more.pop("subsystems", []),
            "effect": more.pop("effect", "read"),
        }
        start = {"action": action, "inputs": more.pop("inputs", {})}
        progress = more.pop("progress", True)
        start["call"] = {
            "call_id": f"c-{self.starts}", "toolbox_id": self.name or "", "tool": name, "deadline_ms": 10000,
            "stop_epoch": self.epoch, "latched": self.latched, "operator": False, **more,
        }
        self.send("start", {"run": self.starts, "progress": progress, "start": start})
        return Started(self, self.starts)

    def call(self, tool: str, args: Optional[Dict[str, Any]] = None, seconds: float = PATIENCE) -> Any:
        """Calls a tool: its actions one after the other, and its conclusion. Raises Failed."""
        args = args or {}
        definition = self.tools()[tool]
        actions = self.plan(tool, args) or [{"name": tool, "params": args}]
        outputs: Dict[str, Any] = {}
        lines: List[Dict[str, Any]] = []
        for one in actions:
            key = one.get("id") or one["name"]
            subsystems = one.get("subsystems", [])
            run = self.start(
                one["name"], one.get("params"), effect=one.get("effect") or definition["effect"], subsystems=subsystems,
                inputs={name: outputs[name] for name in one.get("dependencies", []) if name in outputs}, tool=tool,
            )
            outputs[key] = run.result(seconds)
            lines.append({
                "id": key, "name": one["name"], "subsystems": subsystems, "wave": len(lines) + 1, "outcome": "completed",
                "duration_ms": 0, "output": outputs[key],
            })
        if self.functions.get("conclude"):
            report = {"outcome": "completed", "duration_ms": 0, "actions": lines}
            concluded = self.ask("conclude", "concluded", {"tool": tool, "args": args, "report": report})
            if concluded is not None:
                if "error" in concluded:
                    raise Failed(concluded["error"])
                return concluded["output"]
        return outputs[next(iter(outputs))] if len(outputs) == 1 else outputs

    def halt(self, subsystems: Sequence[str] = ("all",), emergency: bool = False, seconds: float = PATIENCE) -> None:
        """Halts, and waits for the answer. Raises Failed."""
        body: Dict[str, Any] = {"subsystems": list(subsystems), "emergency": emergency}
        if emergency:
            self.epoch += 1
            self.latched = True
            body["stop_epoch"] = self.epoch
        self.ask("halt", "halted", body, seconds)

    def resume(self) -> None:
        """Lifts the emergency stop. Raises Failed if the toolbox refuses."""
        self.ask("resume", "resumed")
        self.latched = False

    def events(self, kind: str) -> List[Dict[str, Any]]:
        """The data of the events of a kind so far."""
        return [one["data"] for one in self.driver.named("event", self.name) if one["kind"] == kind]

    def close(self) -> bool:
        """Closes the toolbox, and the program if it is its only one. True if it closed in time."""
        seq = self.driver.next_seq()
        self.send("close", {"seq": seq})
        in_time = bool(self.wait_for("closed", "seq", seq)["in_time"])
        if self.name is None:
            self.driver.end()
        return in_time

    def __enter__(self) -> Harness:
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            self.close()
        else:
            if self.driver.process is not None:
                self.driver.process.kill()
            self.driver.end()
