"""Looks whether the ovos-tools service is there, when ovos-PHAL starts. It never runs the service: see the README."""
import sys
import threading
import uuid
from pathlib import Path
from typing import Any, Dict, List, Optional

from ovos_bus_client import Message
from ovos_plugin_manager.templates.phal import PHALPlugin

NAME = "ovos-phal-plugin-ovos-tools"
IS_READY, LIST = "mycroft.ovos_tools.is_ready", "ovos.tools.list"

#: Seconds that the service may take to answer: it may start with PHAL.
WAIT = 10.0
#: Seconds between two questions whether it is ready.
AGAIN = 1.0
#: Seconds in which every service that is up has answered.
ANSWERS = 1.0

OTHER_OFF = ('switch it off: "PHAL": {"ovos-phal-plugin-tools": {"enabled": false}} in mycroft.conf, and restart ovos-PHAL')


class OVOSToolsWatch(PHALPlugin):
    """Logs what it finds, once. PHAL starts its thread."""

    def __init__(self, bus: Any = None, config: Optional[Dict[str, Any]] = None):
        self._ended = threading.Event()
        self._answered = threading.Event()
        self._lists: List[List[Dict[str, Any]]] = []
        self._session = {"session_id": f"{NAME}-{uuid.uuid4().hex}"}
        super().__init__(bus=bus, name=NAME, config=config or {})

    def run(self) -> None:
        """Asks, waits and logs."""
        ready = self._is_ready()
        if self._ended.is_set():
            return
        ours, others = self._services()
        if not ready and not ours:
            self.log.warning(f"no ovos-tools service answers on the bus; to set it up: {command()}")
        elif ours > 1:
            self.log.warning(f"{ours} ovos-tools services answer, and each runs every call; stop all but one (pgrep -a ovos-tools lists them)")
        else:
            self.log.info("the ovos-tools service answers")
        if others:
            which = "too, and clients take the answer that comes first" if ready or ours else "instead"
            self.log.warning(f"ovos-PHAL-plugin-tools answers ovos.tools.*, {which}; {OTHER_OFF}")

    def _is_ready(self) -> bool:
        topic = f"{IS_READY}.response"
        self.bus.on(topic, self._on_ready)
        try:
            for _ in range(max(1, round(WAIT / AGAIN))):
                self.bus.emit(Message(IS_READY, {}, {"session": self._session}))
                if self._answered.wait(AGAIN) or self._ended.is_set():
                    break
            return self._answered.is_set()
        finally:
            self.bus.remove(topic, self._on_ready)

    def _on_ready(self, _message: Message) -> None:
        self._answered.set()

    def _services(self) -> tuple:
        """How many of ours list their tools, and how many others. Only ours say of each tool what it does, in `meta`."""
        topic = f"{LIST}.response"
        self.bus.on(topic, self._on_list)
        try:
            self.bus.emit(Message(LIST, {"detail": True}, {"session": self._session}))
            self._ended.wait(ANSWERS)
        finally:
            self.bus.remove(topic, self._on_list)
        ours = sum(all("meta" in tool for tool in tools) for tools in self._lists)
        return ours, len(self._lists) - ours

    def _on_list(self, message: Message) -> None:
        # Answers go to every client, those to other clients' questions, too.
        if (message.context.get("session") or {}).get("session_id") == self._session["session_id"]:
            self._lists.append(message.data.get("tools") or [])

    def shutdown(self) -> None:
        """Ends the look."""
        self._ended.set()
        super().shutdown()


def command() -> str:
    """What sets the service up: the program that is installed with this plugin, else the one in PATH."""
    beside = Path(sys.executable).with_name("ovos-tools")
    return f"{beside if beside.is_file() else 'ovos-tools'} install-service"
