"""Hears the answers, on a connection of its own.

A client of the bus runs its handlers on a few threads, and a skill that waits for its tool in such a handler holds one: when all
are held, the handlers that would bring the answers do not run. The ear hands messages over on the thread that reads the bus.
"""
from __future__ import annotations

import json
import threading
from typing import Any, Callable, ClassVar, Dict, List, Mapping, Tuple

from ovos_bus_client import MessageBusClient

#: Gets the type, the data and the context of a message, on the thread that reads the bus. It must not wait.
Listener = Callable[[str, Mapping[str, Any], Mapping[str, Any]], None]
#: What begins the type of every message of the service.
PREFIX = "ovos.tools."
#: The longest wait for the first connection, in seconds.
CONNECT = 5.0

Address = Tuple[str, int, str, bool]


class Ear(MessageBusClient):  # type: ignore[misc]
    """A connection that only hears. All clients of a process that use the same bus share one."""

    _ears: ClassVar[Dict[Address, "Ear"]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, address: Address):
        host, port, route, ssl = address
        super().__init__(host=host, port=port, route=route, ssl=ssl)
        self._address = address
        self._listeners: List[Listener] = []
        #: Counts the connections: a caller that sees it change has missed what was said in between.
        self.connections = 0

    @classmethod
    def on_bus_of(cls, bus: MessageBusClient, listener: Listener) -> "Ear":
        """The ear on the bus of this client, with one more listener."""
        config = bus.config
        address = (config.host, config.port, config.route, config.ssl)
        with cls._lock:
            ear = cls._ears.get(address)
            if ear is None:
                ear = cls._ears[address] = cls(address)
                ear._listeners = [listener]
                ear.run_in_thread()
            else:
                ear._listeners = [*ear._listeners, listener]
        ear.connected_event.wait(CONNECT)
        return ear

    def leave(self, listener: Listener) -> None:
        """Hears for this listener no longer. The connection ends with the last one."""
        with self._lock:
            self._listeners = [other for other in self._listeners if other != listener]
            last = not self._listeners and self._ears.get(self._address) is self
            if last:
                del self._ears[self._address]
        if last:
            self.close()

    def on_open(self, *args: Any) -> None:
        """Counts the connection."""
        self.connections += 1
        super().on_open(*args)

    def on_message(self, *args: Any) -> None:
        """Hands a message over."""
        text = args[-1]
        hand_over(text.decode("utf-8", "replace") if isinstance(text, bytes) else text, self._listeners)


def hand_over(text: str, listeners: List[Listener]) -> None:
    """Hands a message over that a listener may want; everything else is not even parsed."""
    if PREFIX not in text and ".stop" not in text:
        return
    try:
        message = json.loads(text)
        kind, data, context = message["type"], message.get("data") or {}, message.get("context") or {}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
    if isinstance(kind, str) and isinstance(data, dict) and isinstance(context, dict):
        for listener in listeners:
            listener(kind, data, context)
