"""Asks the service: every request has a `call_id`, and only the answer with that `call_id` is its answer."""
from __future__ import annotations

import queue
import threading
import time
import uuid
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from ovos_bus_client import Message, MessageBusClient
from ovos_bus_client.message import dig_for_message

from .ear import PREFIX, Ear, hand_over
from .errors import BusAway, CallLost, ConfirmationRequired, NoAnswer, RunFailed, ToolsError
from .models import CallResult, Confirmation, Plan, Progress, RunResult, RunStep, Tool

#: Gets the progress of a call, on the thread that waits for its result.
OnProgress = Callable[[Progress], None]
#: Asks a person: True runs the call, False refuses it, None leaves it waiting.
OnConfirm = Callable[[Confirmation], Optional[bool]]
#: Is called about four times a second, on the thread that waits for a call's result.
OnWait = Callable[[], None]

#: How long a question about tools or plans may take, in seconds. A service that starts holds a plan for a while.
ASK = 10.0
#: How often a call that runs is looked after, in seconds.
LOOK_EVERY = 2.0
#: How long the service may take to say that it still has the call, in seconds.
SILENCE = 5.0
#: How long a call waits for the bus to come back, in seconds.
BUS_AWAY = 30.0
#: How long the last answer may take after the call's own time is over, in seconds: motion comes to rest first.
GRACE = 10.0
#: The session that every client shares.
DEFAULT_SESSION = "default"

Answer = Tuple[str, Mapping[str, Any]]


class Call:
    """A call under way. Get its result, or cancel it."""

    def __init__(self, client: "ToolsClient", topic: str, request: Dict[str, Any], message: Optional[Message],
                 timeout: Optional[float], on_progress: Optional[OnProgress], on_wait: Optional[OnWait] = None):
        self._client = client
        self._topic = topic
        self._request = request
        self._message = message
        self._timeout = timeout
        self._on_progress = on_progress
        self._on_wait = on_wait
        self._answers: "queue.SimpleQueue[Answer]" = queue.SimpleQueue()
        self.call_id = str(request["call_id"])
        #: The session of the request that the call is for.
        self.session_id = _session_of(message.context if message is not None else {})
        self._sent = time.monotonic()
        client._begin(self, self._answers)
        try:
            client._emit(topic, request, message)
        except BaseException:
            client._end(self)
            raise

    def cancel(self) -> None:
        """Asks the service to end the call. What moves comes to rest, and `result` raises with how it ended."""
        try:
            self._client._emit(f"{PREFIX}cancel", {"call_id": self.call_id}, self._message)
        except BusAway:
            # The service halts what moves by itself when its bus is away.
            pass

    def answer(self) -> Mapping[str, Any]:
        """The data of the answer, whatever it is. Blocks for as long as the service has the call, which bounds every call itself.
        However the wait ends (a skill that is stopped, Ctrl-C), the call does not go on without its asker.
        """
        try:
            return self._wait()
        except BaseException:
            self.cancel()
            raise
        finally:
            self._client._end(self)

    def result(self) -> CallResult:
        """What the tool returned. Raises ToolsError with the text of the service, ConfirmationRequired, or CallLost."""
        data = self.answer()
        _raise_error(data)
        result = data.get("result")
        return CallResult(self.call_id, result if isinstance(result, dict) else {"result": result},
                          list(data.get("content") or ()))

    def _wait(self) -> Mapping[str, Any]:
        looked, asked, away, absent = self._sent, None, None, 0
        end = None if self._timeout is None else self._sent + self._timeout + GRACE
        connections = self._client._connections
        missed = False
        status = f"{self.call_id[:100]}.status"
        with self._client._asking(status, self._answers):
            while True:
                try:
                    kind, data = self._answers.get(timeout=0.25)
                except queue.Empty:
                    kind, data = "", {}
                if kind == f"{self._topic}.response":
                    return data
                if kind == f"{PREFIX}invoke.progress" and self._on_progress is not None:
                    self._on_progress(Progress.of(data))
                now = time.monotonic()
                if kind == f"{PREFIX}status.response":
                    asked = None
                    known = any(call.get("call_id") == self.call_id for call in data.get("calls", ()))
                    # Its answer may be on its way.
                    absent = 0 if known else absent + 1
                    if absent > 1:
                        raise CallLost(f"ConnectionError: the service has no call {self.call_id} any more, and its answer was lost "
                                       f"{'with the connection to the bus' if missed else 'with the service'}; the call may or may "
                                       "not have been carried out")
                if not self._client.connected:
                    away = away or now
                    asked, missed = None, True
                    if now - away > BUS_AWAY:
                        raise CallLost("ConnectionError: the messagebus is disconnected; the call may or may not have been carried out")
                    continue
                away = None
                if self._on_wait is not None:
                    self._on_wait()
                missed = missed or self._client._connections != connections
                if end is not None and now > end:
                    raise NoAnswer(f"TimeoutError: no answer within {self._timeout:g} s; the call was cancelled")
                if asked is not None and now - asked > SILENCE:
                    raise CallLost(f"ConnectionError: ovos-tools has not answered for {SILENCE:g} s; the call may or may not have been carried out. "
                                   "Check that the service runs, and on which bus")
                if asked is None and now - looked >= LOOK_EVERY:
                    looked = asked = now
                    self._client._emit(f"{PREFIX}status", {"call_id": status}, None)


class ToolsClient:
    """The tools of the service. Thread-safe; as many askers as there are threads get each its own answers.

    bus: the skill's own bus (`self.bus`): requests go out through it, so that they have the skill's context. Answers are heard on a
    connection of their own, because the handlers of a skill may be what waits for them.

    skill_id: names the asker (`source`) where no message does; and when the assistant stops this skill, its calls are cancelled.

    context: of all requests whose `message` is not given. Without it they have the context of the message that is being handled.
    """

    def __init__(self, bus: Any, skill_id: str = "ovos-tools-client", context: Optional[Mapping[str, Any]] = None):
        self._bus = bus
        self._skill_id = skill_id
        self._context = context
        self._lock = threading.Lock()
        self._waiting: Dict[str, "queue.SimpleQueue[Answer]"] = {}
        self._calls: Dict[str, Call] = {}
        self._closed = False
        self._hearing = False
        self._opening = threading.Lock()
        self._ear: Optional[Ear] = None

    # -- tools --

    def list(self, toolbox_id: Optional[str] = None, effect: Optional[str] = None) -> List[Tool]:
        """The tools, with their effects."""
        data: Dict[str, Any] = {"detail": True}
        if toolbox_id is not None:
            data["toolbox_id"] = toolbox_id
        if effect is not None:
            data["effect"] = effect
        return [Tool.of(entry) for entry in self._ask("list", data).get("tools", ())]

    def get(self, name: str, toolbox_id: Optional[str] = None) -> Tool:
        """One tool."""
        return Tool.of(self._ask("get", _named(name, toolbox_id, detail=True)))

    def plan(self, name: str, args: Optional[Mapping[str, Any]] = None, toolbox_id: Optional[str] = None) -> Plan:
        """What a call would do; nothing runs."""
        return Plan.of(self._ask("plan", _named(name, toolbox_id, args=dict(args or {}))))

    def export(self, format: str, toolbox_id: Optional[str] = None, detail: bool = False) -> List[Dict[str, Any]]:
        """The tools in a format for models, such as `openai` or `anthropic`; all but those that lift a stop. With `detail` each has
        the key `tool`, which says which tool it is: `name`, `toolbox_id`, `meta`."""
        data: Dict[str, Any] = {"format": format}
        if detail:
            data["detail"] = True
        if toolbox_id is not None:
            data["toolbox_id"] = toolbox_id
        return list(self._ask("export", data).get("tools", ()))

    def status(self) -> Dict[str, Any]:
        """The toolboxes, the calls under way, and the service itself: the data of the answer to `ovos.tools.status`."""
        return dict(self._ask("status", {}))

    def schedule(self, name: str, args: Optional[Mapping[str, Any]] = None, *, toolbox_id: Optional[str] = None,
                 message: Optional[Message] = None, **when: Any) -> Dict[str, Any]:
        """Asks for a call later. `when` has one of `in_seconds`, `at`, `every_seconds`, `cron` and `on_event`, and may have `times` and
        `title`. The answer has the `schedule_id` and the `next` times. message: the request that it is for. NoAnswer where the
        service does not run its schedule door.
        """
        call = _named(name, toolbox_id, args=dict(args or {}))
        return _of_schedules(self._ask("schedule", {"call": call, **when}, message=message))

    def schedules(self, message: Optional[Message] = None) -> List[Dict[str, Any]]:
        """The schedules that the one who asks may see."""
        return list(self._ask("schedule.list", {}, message=message).get("schedules", ()))

    def cancel_schedule(self, schedule_id: str, message: Optional[Message] = None) -> Dict[str, Any]:
        """Removes a schedule, and ends its call if that runs."""
        return _of_schedules(self._ask("schedule.cancel", {"schedule_id": schedule_id}, message=message))

    def say(self, topic: str, data: Optional[Mapping[str, Any]] = None) -> None:
        """Says something that has no answer. Raises BusAway."""
        self._check_open()
        self._emit(topic, data or {}, self._handled())

    # -- calls --

    def start(self, name: str, args: Optional[Mapping[str, Any]] = None, *, toolbox_id: Optional[str] = None,
              timeout: Optional[float] = None, message: Optional[Message] = None, on_progress: Optional[OnProgress] = None,
              on_wait: Optional[OnWait] = None, content: Optional[str] = None, confirm: Optional[str] = None,
              decline: Optional[str] = None) -> Call:
        """Begins a call and returns at once.

        timeout: seconds after which the service ends the call, waiting for other calls included. Without it the limits of the tool
        apply. message: the request that the call is for, whose session it gets; by default the one that is being handled.
        on_wait: for what has to go on while the result is waited for; an error of it ends the wait, and with it the call.
        content: "path" or "inline" asks for pictures and other media. confirm, decline: the token of a Confirmation.
        """
        request = _named(name, toolbox_id, args=dict(args or {}), detail=True, call_id=_new_id())
        for key, value in (("content", content), ("confirm", confirm), ("decline", decline)):
            if value is not None:
                request[key] = value
        return self._start(f"{PREFIX}invoke", request, timeout, message, on_progress, on_wait)

    def call(self, name: str, args: Optional[Mapping[str, Any]] = None, *, toolbox_id: Optional[str] = None,
             timeout: Optional[float] = None, message: Optional[Message] = None, on_progress: Optional[OnProgress] = None,
             content: Optional[str] = None, on_confirm: Optional[OnConfirm] = None) -> CallResult:
        """Calls a tool and waits for its result; the arguments are those of `start`.

        on_confirm: asks a person where one has to confirm the call: True runs it, False refuses it. Without it, and for None,
        ConfirmationRequired is raised, and `confirm` makes the second trip.
        """
        message = message or self._handled()
        try:
            return self.start(name, args, toolbox_id=toolbox_id, timeout=timeout, message=message, on_progress=on_progress,
                              content=content).result()
        except ConfirmationRequired as required:
            yes = on_confirm(required.confirmation) if on_confirm is not None else None
            if yes is None:
                raise
            return self.confirm(required.confirmation, name, args, yes=yes, toolbox_id=toolbox_id, timeout=timeout,
                                message=message, on_progress=on_progress, content=content)

    def confirm(self, confirmation: Confirmation, name: str, args: Optional[Mapping[str, Any]] = None, *, yes: bool = True,
                toolbox_id: Optional[str] = None, timeout: Optional[float] = None, message: Optional[Message] = None,
                on_progress: Optional[OnProgress] = None, content: Optional[str] = None) -> CallResult:
        """The second trip of a call that a person confirmed, or with `yes=False` refused: the same call, with the token. A refusal
        raises ToolsError of the kind `PermissionError`.
        """
        return self.start(name, args, toolbox_id=toolbox_id, timeout=timeout, message=message or self._handled(),
                          on_progress=on_progress, content=content, confirm=confirmation.token if yes else None,
                          decline=None if yes else confirmation.token).result()

    def run(self, steps: Iterable[Union[RunStep, Mapping[str, Any]]], *, timeout: Optional[float] = None,
            message: Optional[Message] = None, on_progress: Optional[OnProgress] = None) -> RunResult:
        """Makes several calls as one request. Raises RunFailed, which has what became of each step, unless all completed."""
        data = [step.data() if isinstance(step, RunStep) else dict(step) for step in steps]
        request = {"steps": data, "detail": True, "call_id": _new_id()}
        answer = self._start(f"{PREFIX}run", request, timeout, message, on_progress).answer()
        run = RunResult.of(answer)
        if not run.ok:
            raise RunFailed(run)
        return run

    def emergency_stop(self, toolbox_id: Optional[str] = None, wait: float = ASK) -> List[Dict[str, Any]]:
        """Stops a toolbox, or everything, in an emergency; an operator lifts it. The answer, which is waited for at most `wait`
        seconds, says which toolboxes confirmed it.
        """
        data = {} if toolbox_id is None else {"toolbox_id": toolbox_id}
        return list(self._ask("stop", data, wait).get("toolboxes", ()))

    def is_calling(self, message: Optional[Message] = None) -> bool:
        """Whether a call is under way, in the session of this message where there is one. It is what a skill answers in its `can_stop`.
        """
        session_id = None if message is None else _session_of(message.context)
        with self._lock:
            return any(session_id in (None, call.session_id) for call in self._calls.values())

    def cancel_all(self, session_id: Optional[str] = None) -> bool:
        """Cancels the calls that are under way: those of this session, or all where there is none. True if there were any. It is
        what a skill does in its `stop_session`.
        """
        with self._lock:
            calls = list(self._calls.values())
        calls = [call for call in calls if session_id in (None, DEFAULT_SESSION, call.session_id)]
        for call in calls:
            call.cancel()
        return bool(calls)

    def close(self) -> None:
        """Cancels the calls that are under way, and hears no longer. It is what a skill does in its `shutdown`."""
        self.cancel_all()
        with self._lock:
            self._closed = True
            ear, self._ear = self._ear, None
        if ear is not None:
            ear.leave(self._hear)
        elif self._hearing:
            self._bus.remove("message", self._hear_text)

    @property
    def connected(self) -> bool:
        """Whether requests reach the bus and answers are heard."""
        clients = [self._bus] if self._ear is None else [self._bus, self._ear]
        events = [getattr(client, "connected_event", None) for client in clients]
        return all(event is None or event.is_set() for event in events)

    # -- the bus --

    def _start(self, topic: str, request: Dict[str, Any], timeout: Optional[float], message: Optional[Message],
               on_progress: Optional[OnProgress], on_wait: Optional[OnWait] = None) -> Call:
        self._check_open()
        if timeout is not None:
            request["timeout_ms"] = max(1, round(timeout * 1000))
        if on_progress is not None:
            request["progress"] = True
        return Call(self, topic, request, message or self._handled(), timeout, on_progress, on_wait)

    def _handled(self) -> Optional[Message]:
        """The message that a request is for: the one that is being handled, unless the client has a context of its own."""
        return Message("", {}, dict(self._context)) if self._context is not None else dig_for_message()

    def _ask(self, what: str, data: Dict[str, Any], wait: float = ASK, message: Optional[Message] = None) -> Mapping[str, Any]:
        """The data of the answer to a question."""
        self._check_open()
        call_id, topic = _new_id(), f"{PREFIX}{what}"
        answers: "queue.SimpleQueue[Answer]" = queue.SimpleQueue()
        with self._asking(call_id, answers):
            self._emit(topic, {**data, "call_id": call_id}, message or self._handled())
            end = time.monotonic() + wait
            while True:
                try:
                    kind, answer = answers.get(timeout=max(0.0, end - time.monotonic()))
                except queue.Empty:
                    raise NoAnswer(f"TimeoutError: ovos-tools did not answer `{topic}` within {wait:g} s; check that the service runs, "
                                   "and on which bus") from None
                if kind == f"{topic}.response":
                    _raise_error(answer)
                    return answer

    def _asking(self, call_id: str, answers: "queue.SimpleQueue[Answer]") -> "_Asking":
        return _Asking(self._waiting, call_id, answers)

    def _begin(self, call: Call, answers: "queue.SimpleQueue[Answer]") -> None:
        with self._lock:
            self._waiting[call.call_id] = answers
            self._calls[call.call_id] = call

    def _end(self, call: Call) -> None:
        with self._lock:
            self._waiting.pop(call.call_id, None)
            self._calls.pop(call.call_id, None)

    def _emit(self, topic: str, data: Mapping[str, Any], message: Optional[Message]) -> None:
        self._listen()
        if not self.connected:
            raise BusAway(f"ConnectionError: the messagebus is disconnected, so `{topic}` was not sent")
        if message is not None:
            request = message.forward(topic, dict(data))
        else:
            request = Message(topic, dict(data))
        request.context.setdefault("source", self._skill_id)
        self._bus.emit(request)

    def _listen(self) -> None:
        """Begins to hear before the first request."""
        with self._opening:
            if self._hearing or self._closed:
                return
            if isinstance(self._bus, MessageBusClient):
                self._ear = Ear.on_bus_of(self._bus, self._hear)
            else:
                # A bus for tests, whose handlers run on the thread that emits.
                self._bus.on("message", self._hear_text)
            self._hearing = True

    def _check_open(self) -> None:
        if self._closed:
            raise ToolsError("RuntimeError: this client is closed")

    @property
    def _connections(self) -> int:
        return 0 if self._ear is None else self._ear.connections

    def _hear_text(self, text: str) -> None:
        hand_over(text, [self._hear])

    def _hear(self, kind: str, data: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        """Gets every message of the service, on the thread that reads the bus."""
        if kind == f"{self._skill_id}.stop":
            threading.Thread(target=self.cancel_all, args=(_session_of(context),), daemon=True).start()
            return
        call_id = data.get("call_id")
        if isinstance(call_id, str) and (kind.endswith(".response") or kind == f"{PREFIX}invoke.progress"):
            answers = self._waiting.get(call_id)
            if answers is not None:
                answers.put((kind, data))


class _Asking:
    """Hears the answers with a call_id while it lasts."""

    def __init__(self, waiting: Dict[str, "queue.SimpleQueue[Answer]"], call_id: str, answers: "queue.SimpleQueue[Answer]"):
        self._waiting, self._call_id, self._answers = waiting, call_id, answers

    def __enter__(self) -> None:
        self._waiting[self._call_id] = self._answers

    def __exit__(self, *_: object) -> None:
        self._waiting.pop(self._call_id, None)


def _named(name: str, toolbox_id: Optional[str], **more: Any) -> Dict[str, Any]:
    request: Dict[str, Any] = {"name": name, **more}
    if toolbox_id is not None:
        request["toolbox_id"] = toolbox_id
    return request


def _of_schedules(answer: Mapping[str, Any]) -> Dict[str, Any]:
    return {key: value for key, value in answer.items() if key != "call_id"}


def _new_id() -> str:
    return f"skill-{uuid.uuid4().hex}"


def _session_of(context: Mapping[str, Any]) -> str:
    session = context.get("session")
    name = session.get("session_id") if isinstance(session, dict) else None
    return name if isinstance(name, str) else DEFAULT_SESSION


def _raise_error(data: Mapping[str, Any]) -> None:
    """Raises the error of an answer, if it is one."""
    error = data.get("error")
    if error is None:
        return
    confirm = data.get("confirm")
    if isinstance(confirm, dict):
        raise ConfirmationRequired(str(error), Confirmation.of(confirm))
    detail = data.get("error_detail") or {}
    raise ToolsError(str(error), detail.get("kind"), detail)
