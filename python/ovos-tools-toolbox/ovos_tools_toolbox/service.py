"""The service, asked over the bus: questions, calls, and what ends them."""
import queue
import threading
import time
import uuid
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from ovos_bus_client import Message, MessageBusClient

from .stops import Stops, session_of

#: How the policy of the service knows this caller: `door:toolbox`.
SOURCE = "ovos-tools-toolbox"
#: The key of a message's context that says which question an answer is for. The service returns the context.
QUESTION = "ovos_tools_toolbox"

LIST, EXPORT, STATUS = "ovos.tools.list", "ovos.tools.export", "ovos.tools.status"
INVOKE, CANCEL, STOP = "ovos.tools.invoke", "ovos.tools.cancel", "ovos.tools.stop"
BEAT, EVENT, RELOADED = "ovos.tools.door.beat", "ovos.tools.event", "ovos.tools.reload.response"
USER_STOP = "ovos.stop"

#: Seconds between two beats while something moves; the service waits 800 ms for one.
BEAT_EVERY = 0.25
#: Seconds between two questions to the service whether it still runs.
LOOK_EVERY = 1.0
#: How long it may take to answer that, in seconds.
SILENCE = 5.0
#: How long a call waits for the bus to come back, in seconds.
BUS_AWAY = 30.0
#: How long a client of one's own may take to connect, in seconds.
CONNECT = 3.0


class ToolError(RuntimeError):
    """A call has no result. The text is the service's, for the model."""


class Service:
    """One session at the service. Thread-safe; a call blocks the thread that makes it, as a loop expects."""

    def __init__(self, bus: Any = None):
        #: Of all calls of this toolbox: a stop of it ends them, and the service ends them when the beats end.
        self.session_id = f"{SOURCE}-{uuid.uuid4().hex}"
        self.stops = Stops()
        #: Counts what may have changed the list of tools.
        self.changes = 0
        self._bus = bus
        self._own: Optional[MessageBusClient] = None
        self._lock = threading.RLock()
        self._waiting: Dict[str, "queue.SimpleQueue[Tuple[str, Dict[str, Any]]]"] = {}
        self._calls: Dict[str, str] = {}
        self._ended = threading.Condition()
        self._handlers = {
            **{f"{topic}.response": self._on_answer for topic in (LIST, EXPORT, STATUS, INVOKE, STOP)},
            EVENT: self._on_event,
            RELOADED: self._on_change,
            "recognizer_loop:utterance": self._on_request,
            "ovos.persona.query": self._on_request,
            "ovos.stop": self._on_stop,
            "mycroft.stop": self._on_stop,
        }
        if bus is not None:
            self._listen(bus)

    def use(self, bus: Any) -> None:
        """Speaks through this bus from now on."""
        with self._lock:
            if bus is not self._bus:
                self._leave()
                self._bus = bus
                self._listen(bus)

    def connect(self) -> Any:
        """The bus; without one a client of the bus that mycroft.conf names, which reconnects by itself."""
        with self._lock:
            if self._bus is None:
                self._own = self._bus = MessageBusClient()
                self._own.on("open", self._on_change)
                self._listen(self._bus)
                self._own.run_in_thread()
                self._own.connected_event.wait(CONNECT)
            return self._bus

    def close(self) -> None:
        """Ends the calls and leaves the bus."""
        self.cancel_all()
        with self._lock:
            self._leave()

    def _listen(self, bus: Any) -> None:
        for topic, handler in self._handlers.items():
            bus.on(topic, handler)

    def _leave(self) -> None:
        if self._bus is not None:
            for topic, handler in self._handlers.items():
                self._bus.remove(topic, handler)
        if self._own is not None:
            self._own.close()
        self._bus = self._own = None

    # -- questions --

    def ask(self, topic: str, data: Optional[Dict[str, Any]] = None, wait: float = 3.0,
            ours: Callable[[Dict[str, Any]], bool] = lambda _: True) -> Dict[str, Any]:
        """The data of the answer. Raises ToolError where none comes within `wait` seconds. `ours` tells the answer of ovos-tools
        from that of the published service, which may run beside it and knows other tools.
        """
        until = time.monotonic() + wait
        with self._answers() as (question, answers):
            self._emit(topic, data or {}, question)
            try:
                while True:
                    _, answer = answers.get(timeout=max(0.0, until - time.monotonic()))
                    if ours(answer):
                        return answer
            except queue.Empty:
                raise ToolError(f"ConnectionError: ovos-tools did not answer `{topic}` within {wait:g} s; check that the "
                                "service runs, and on which bus") from None

    def say(self, topic: str, data: Optional[Dict[str, Any]] = None) -> None:
        """Says something that has no answer."""
        self._emit(topic, data or {}, None)

    def _emit(self, topic: str, data: Dict[str, Any], question: Optional[str]) -> None:
        bus = self.connect()
        if not _is_connected(bus):
            raise ToolError(f"ConnectionError: the messagebus is away, so `{topic}` was not sent")
        context: Dict[str, Any] = {"source": SOURCE, "session": {"session_id": self.session_id}}
        if question:
            context[QUESTION] = question
        bus.emit(Message(topic, data, context))

    @contextmanager
    def _answers(self) -> Iterator[Tuple[str, "queue.SimpleQueue[Tuple[str, Dict[str, Any]]]"]]:
        question, answers = uuid.uuid4().hex, queue.SimpleQueue()
        self._waiting[question] = answers
        try:
            yield question, answers
        finally:
            del self._waiting[question]

    def _on_answer(self, message: Message) -> None:
        answers = self._waiting.get(message.context.get(QUESTION) or "")
        if answers is not None:
            answers.put((message.msg_type, message.data))

    # -- calls --

    def call(self, request: Dict[str, Any], moves: bool, request_of: Optional[Message] = None) -> Any:
        """The result of a call. `moves` says whether it moves a machine; `request_of` is the user's request that it is for.
        Raises ToolError with the service's text. However this ends, the call does.
        """
        call_id = f"{SOURCE}-{uuid.uuid4().hex}"
        with self._answers() as (question, answers):
            self._calls[call_id] = session_of(request_of) if request_of is not None else ""
            try:
                if moves:
                    self.say(BEAT)
                self._emit(INVOKE, {**request, "call_id": call_id, "detail": True}, question)
                answer = self._answer(call_id, question, answers, moves)
            except BaseException:
                self._cancel(call_id)
                raise
            finally:
                with self._ended:
                    del self._calls[call_id]
                    self._ended.notify_all()
        if "error" in answer:
            raise ToolError(_error(answer))
        return answer.get("result")

    def _answer(self, call_id: str, question: str, answers: Any, moves: bool) -> Dict[str, Any]:
        """Waits for as long as the service has the call, which bounds every call itself."""
        sent = looked = heard = time.monotonic()
        asked, away, absent = False, None, 0
        while True:
            try:
                topic, data = answers.get(timeout=BEAT_EVERY)
            except queue.Empty:
                topic, data = None, {}
            # The published service answers, too, where it runs, and names no call.
            if topic == f"{INVOKE}.response" and data.get("call_id") == call_id:
                return data
            now = time.monotonic()
            if topic == f"{STATUS}.response":
                asked, heard = False, now
                if data["service"]["uptime_ms"] / 1000 < looked - sent - 0.01:
                    raise ToolError("ConnectionError: ovos-tools was restarted during the call; how far it came is not known")
                known = any(call.get("call_id") == call_id for call in data["calls"])
                absent = 0 if away is None or known else absent + 1
                if absent > 1:
                    raise ToolError("ConnectionError: the messagebus was lost during the call, and with it the answer; how "
                                    "far the call came is not known")
            if not _is_connected(self._bus):
                away = away or now
                asked, heard = False, now
                if now - away > BUS_AWAY:
                    raise ToolError("ConnectionError: the messagebus is away; how far the call came is not known")
                continue
            if asked and now - heard > SILENCE:
                raise ToolError(f"ConnectionError: ovos-tools has not answered for {SILENCE:g} s; how far the call came is "
                                "not known")
            if moves:
                self.say(BEAT)
            if not asked and now - looked >= LOOK_EVERY:
                asked, looked, heard = True, now, now
                self._emit(STATUS, {}, question)

    def cancel_all(self, session: Optional[str] = None) -> None:
        """Ends the calls for requests of this session; all calls where it is None."""
        for call_id, request_of in list(self._calls.items()):
            if session is None or request_of == session:
                self._cancel(call_id)

    def _cancel(self, call_id: str) -> None:
        try:
            self.say(CANCEL, {"call_id": call_id})
        except ToolError:
            # The bus is away. The service ends the call itself: no beat reaches it.
            pass

    @property
    def running(self) -> int:
        """How many calls are under way."""
        return len(self._calls)

    def wait_until_ended(self, wait: float) -> int:
        """Waits until the calls that are under way have ended, or `wait` seconds; how many have not."""
        before = set(self._calls)
        with self._ended:
            self._ended.wait_for(lambda: not before & set(self._calls), timeout=wait)
            return len(before & set(self._calls))

    # -- what is heard --

    def _on_event(self, message: Message) -> None:
        if message.data.get("kind") == "tools_changed":
            self.changes += 1

    def _on_change(self, _message: Any = None) -> None:
        self.changes += 1

    def _on_request(self, message: Message) -> None:
        self.stops.hear(session_of(message))

    def _on_stop(self, message: Message) -> None:
        session = session_of(message)
        if session == self.session_id:
            return
        # As the service reads it: a stop of the default session is one of all.
        session = None if session == "default" else session
        self.stops.stop(session)
        self.cancel_all(session)


def _is_connected(bus: Any) -> bool:
    connected = getattr(bus, "connected_event", None)
    return bus is not None and (connected is None or connected.is_set())


def _error(answer: Dict[str, Any]) -> str:
    """The error as a model is told it. The token that confirms a call is for people, not for models."""
    error, confirm = str(answer["error"]), answer.get("confirm")
    if not confirm:
        return error
    return (f"{error}\nIt did not run: a person has to confirm it. Tell the user that `ovos-tools approve {confirm['id']}`, "
            f"typed on the machine of the service within {confirm['expires_ms'] // 1000} s, lets it run when you call it "
            "again with the same arguments.")
