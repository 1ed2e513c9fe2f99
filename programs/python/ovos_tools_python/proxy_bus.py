"""A stand-in for the bus client, for toolboxes that want one (`"bus": "proxy"`).

Questions travel as `request`, to topics that `--request` allows; messages of topics that `--subscribe` names arrive; what is
emitted becomes an event `bus_message`. The protocol carries nothing else. Topics of tools and the user's stop are swallowed:
a toolbox that is bound to a bus would answer them beside the service.
"""

from __future__ import annotations

import logging
import threading
from typing import Any, Callable, Dict, List, Optional

from ovos_tools_program.errors import ToolError
from ovos_tools_program.host import Host

log = logging.getLogger("ovos_tools_python")
_SWALLOWED = ("ovos.persona.tools.", "ovos.tools.")
_STOPS = ("ovos.stop", "mycroft.stop")


def is_swallowed(topic: str) -> bool:
    """Whether a topic is the service's own business."""
    return topic.startswith(_SWALLOWED) or topic in _STOPS


class ProxyBus:
    """The methods of a bus client that toolboxes use."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._handlers: Dict[str, List[Callable[[Any], Any]]] = {}
        self._lock = threading.Lock()
        #: Set: there is always a service.
        self.connected_event = threading.Event()
        self.connected_event.set()
        self.started_running = True

    def on(self, topic: str, handler: Callable[[Any], Any]) -> None:
        """Calls the handler for messages of a topic that `--subscribe` names."""
        if not is_swallowed(topic):
            with self._lock:
                self._handlers.setdefault(topic, []).append(handler)

    def once(self, topic: str, handler: Callable[[Any], Any]) -> None:
        """As `on`, for the next message alone."""

        def first(message: Any) -> Any:
            self.remove(topic, first)
            return handler(message)

        self.on(topic, first)

    def remove(self, topic: str, handler: Callable[[Any], Any]) -> None:
        """Undoes `on`."""
        with self._lock:
            handlers = self._handlers.get(topic, [])
            if handler in handlers:
                handlers.remove(handler)

    def remove_all_listeners(self, topic: str) -> None:
        """Undoes every `on` of a topic."""
        with self._lock:
            self._handlers.pop(topic, None)

    def emit(self, message: Any) -> None:
        """Puts a message on the bus as an event `bus_message` with its type and data."""
        topic, data = message.msg_type, message.data
        if is_swallowed(topic):
            log.debug("`%s` is not sent: the service answers it", topic)
        else:
            self._host.event("bus_message", {"type": topic, "data": data})

    def wait_for_response(self, message: Any, reply_type: Optional[str] = None, timeout: float = 3.0) -> Any:
        """Asks the bus. None if no answer came in time, or the topic is not allowed."""
        if is_swallowed(message.msg_type):
            return None
        try:
            answer = self._host.request(message.msg_type, message.data, timeout)
        except ToolError as error:
            log.warning("no answer to `%s`: %s", message.msg_type, error)
            return None
        return type(message)(reply_type or f"{message.msg_type}.response", answer, getattr(message, "context", {}))

    def wait_for_message(self, topic: str, timeout: float = 3.0) -> Any:
        """Waits for the next message of a topic that `--subscribe` names; None if none came."""
        came: List[Any] = []
        event = threading.Event()

        def handler(message: Any) -> None:
            came.append(message)
            event.set()

        self.on(topic, handler)
        event.wait(timeout)
        self.remove(topic, handler)
        return came[0] if came else None

    def deliver(self, topic: str, data: Dict[str, Any]) -> None:
        """Hands a message to its handlers."""
        from ovos_bus_client import Message

        with self._lock:
            handlers = list(self._handlers.get(topic, []))
        for handler in handlers:
            try:
                handler(Message(topic, data))
            except Exception:
                log.exception("a handler of `%s` failed", topic)
