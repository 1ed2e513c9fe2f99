"""The service, asked for a loop: one session of calls, and what ends them."""
import threading
import uuid
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Tuple

from ovos_bus_client import Message, MessageBusClient
from ovos_tools_client import BusAway, Call, CallResult, ToolsClient, ToolsError

from .stops import Stops, session_of, skill_of

#: How the policy of the service knows this caller: `door:toolbox`.
SOURCE = "ovos-tools-toolbox"
#: Says that the caller of what moves is there. It is said about four times a second; the service waits 800 ms for one.
BEAT = "ovos.tools.door.beat"
#: The ends of the types of messages that stop one skill, with the quote after them.
SKILL_STOPS = (':stop"', '.stop"')
#: Stops the calls of a session.
USER_STOP = "ovos.stop"

#: How long a client of one's own may take to connect, in seconds.
CONNECT = 3.0


class Service:
    """One session at the service. Thread-safe; a call blocks the thread that makes it, as a loop expects."""

    def __init__(self, bus: Any = None, on_stop: Callable[[Optional[str]], None] = lambda session: None):
        #: Of all calls of this toolbox: a stop of it ends them, and the service ends them when the beats end.
        self.session_id = f"{SOURCE}-{uuid.uuid4().hex}"
        self.stops = Stops()
        #: Counts what may have changed the list of tools.
        self.changes = 0
        #: Gets the session in which the user says stop; None for all of them.
        self._stopped = on_stop
        self._bus = bus
        self._own: Optional[MessageBusClient] = None
        self._client: Optional[ToolsClient] = None
        self._lock = threading.RLock()
        #: The calls under way, each with the session of the request that it is for, and the skill that handles it.
        self._calls: Dict[Call, Tuple[str, Optional[str]]] = {}
        self._ended = threading.Condition()
        self._handlers = {
            "ovos.tools.event": self._on_event,
            "ovos.tools.reload.response": self._on_change,
            "recognizer_loop:utterance": self._on_request,
            "ovos.persona.query": self._on_request,
            "ovos.stop": self._on_stop,
            "mycroft.stop": self._on_stop,
            "message": self._on_any,
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

    @property
    def bus(self) -> Any:
        """The bus; without one a client of the bus that mycroft.conf names, which reconnects by itself."""
        with self._lock:
            if self._bus is None:
                self._own = self._bus = MessageBusClient()
                self._own.on("open", self._on_change)
                self._listen(self._bus)
                self._own.run_in_thread()
                self._own.connected_event.wait(CONNECT)
            return self._bus

    @property
    def client(self) -> ToolsClient:
        """What asks the service in this session."""
        with self._lock:
            bus = self.bus
            if self._client is None:
                self._client = ToolsClient(bus, SOURCE, self._context(None))
            return self._client

    def close(self) -> None:
        """Ends the calls and leaves the bus."""
        with self._lock:
            self._leave()

    def _listen(self, bus: Any) -> None:
        for topic, handler in self._handlers.items():
            bus.on(topic, handler)

    def _leave(self) -> None:
        if self._client is not None:
            self._client.close()
        if self._bus is not None:
            for topic, handler in self._handlers.items():
                self._bus.remove(topic, handler)
        if self._own is not None:
            self._own.close()
        self._bus = self._own = self._client = None

    # -- calls --

    def call(self, name: str, args: Dict[str, Any], effect: str, request_of: Optional[Message] = None,
             **more: Any) -> CallResult:
        """The result of a call of a tool with this effect. `request_of` is the user's request that it is for; `more` is what
        `ToolsClient.start` takes. Raises ToolsError with the service's text. However this ends, the call does.
        """
        self.check_goes_on(effect, request_of)
        client = self.client
        beat = None
        if effect == "motion":
            client.say(BEAT)
            beat = partial(_beat, client)
        call = client.start(name, args, message=self.request(request_of), on_wait=beat, **more)
        try:
            self._calls[call] = (session_of(request_of), skill_of(request_of)) if request_of is not None else ("", None)
            try:
                # A stop that came meanwhile did not find the call.
                self.check_goes_on(effect, request_of)
            except ToolsError:
                call.cancel()
            return call.result()
        finally:
            with self._ended:
                self._calls.pop(call, None)
                self._ended.notify_all()

    def schedule(self, name: str, toolbox_id: str, args: Dict[str, Any], when: Dict[str, Any],
                 request_of: Optional[Message]) -> Dict[str, Any]:
        """Asks for a call later, for a request of the user. Raises ToolsError."""
        # What it does later is not known to be harmless.
        self.check_goes_on("motion", request_of)
        return self.client.schedule(name, args, toolbox_id=toolbox_id, message=self.request(request_of), **when)

    def request(self, request_of: Optional[Message]) -> Message:
        """What is asked for a user's request is sent as one that is derived from this."""
        return Message("", {}, self._context(request_of))

    def check_goes_on(self, effect: str, request_of: Optional[Message]) -> None:
        """Raises ToolsError for what changes or moves something for a request that the user has stopped."""
        if effect in ("write", "motion") and self.stops.is_over(request_of):
            raise ToolsError("CancelledError: the user has said stop. Call no further tools; answer the user.")

    def stop_session(self) -> None:
        """Says that the user of this session stops. Raises BusAway."""
        self.client.say(USER_STOP)

    def _context(self, request_of: Optional[Message]) -> Dict[str, Any]:
        """The context of what is asked for a user's request: the session is that of this toolbox, the language that of the user, and a
        satellite that speaks is named, so that what the service refuses to it is refused here, too.
        """
        session: Dict[str, Any] = {"session_id": self.session_id}
        context: Dict[str, Any] = {"source": SOURCE, "session": session}
        if request_of is not None:
            if lang := language_of(request_of):
                session["lang"] = lang
            if asker := _satellites(request_of.context):
                context["on_behalf"] = asker
        return context

    def cancel_all(self, session: Optional[str] = None, skill: Optional[str] = None) -> None:
        """Ends the calls for requests of this session that this skill handles; None stands for all of them."""
        for call, (request_in, handled_by) in list(self._calls.items()):
            if session in (None, request_in) and skill in (None, handled_by):
                call.cancel()

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
        self._stop(session, None)

    def _on_any(self, text: Any) -> None:
        """Hears a stop that the assistant hands to one skill, `<skill_id>:stop`, because that skill is what the user talks with. No other
        message says it then.
        """
        if not isinstance(text, str) or not any(end in text for end in SKILL_STOPS):
            return
        try:
            message = Message.deserialize(text)
        except (ValueError, KeyError, TypeError, AttributeError):
            return
        skill, end = message.msg_type[:-5], f'{message.msg_type[-5:]}"'
        if skill and end in SKILL_STOPS and message.msg_type not in self._handlers:
            self._stop(session_of(message), skill)

    def _stop(self, session: Optional[str], skill: Optional[str]) -> None:
        self.stops.stop(session, skill)
        self.cancel_all(session, skill)
        self._stopped(session)


def _beat(client: ToolsClient) -> None:
    try:
        client.say(BEAT)
    except BusAway:
        # The service ends the call itself: no beat reaches it.
        pass


def language_of(message: Message) -> Optional[str]:
    """The language of a user's request."""
    session = message.context.get("session")
    spoken = message.data.get("lang") or (session.get("lang") if isinstance(session, dict) else None)
    return spoken if isinstance(spoken, str) and spoken else None


def _satellites(context: Dict[str, Any]) -> List[str]:
    """The HiveMind satellite whose request this is, as `hive:<name>`, and those for whom its request is made."""
    peer, others = context.get("peer"), context.get("on_behalf")
    named = [f"hive:{peer.partition('::')[0]}"] if isinstance(peer, str) and peer else []
    # The service reads no more than seven.
    return (named + [one for one in others if isinstance(one, str)] if isinstance(others, list) else named)[:7]
