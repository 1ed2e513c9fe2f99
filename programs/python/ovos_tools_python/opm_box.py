"""One OPM toolbox: constructed as OVOS's own loaders do, called through its `call_tool`."""

from __future__ import annotations

import inspect
import logging
import threading
from typing import Any, Callable, Dict, List, Optional

from ovos_tools_program.box import Box
from ovos_tools_program.errors import ToolError
from ovos_tools_program.host import Host
from ovos_tools_program.run import Context

from .effects import effect_of
from .entries import Entry
from .proxy_bus import ProxyBus
from .reasons import explain

log = logging.getLogger("ovos_tools_python")
#: Calls that were cancelled and never ended, before the program wants to be replaced: each holds a thread.
MAX_ABANDONED = 8
#: Seconds until a discovery that found nothing is repeated; doubled each time, up to the last.
FIRST_RETRY, LAST_RETRY = 1.0, 300.0
#: How often a discovery is repeated that finds nothing without failing; a toolbox that is not configured has no tools.
EMPTY_RETRIES = 8
#: One import at a time: modules that import each other on two threads see each other half made.
_IMPORTS = threading.Lock()
#: Seconds that an import waits for the one before it, which may hang.
IMPORT_PATIENCE = 10.0


class OpmBox(Box):
    """A toolbox of the group `opm.agents.toolbox`."""

    abandons = True

    def __init__(self, entry: Entry, manifest: Dict[str, Any], replace: Callable[[str], None]) -> None:
        """`replace` is called when the program has to be replaced."""
        self.manifest = manifest
        self._entry = entry
        self._replace = replace
        self._box: Any = None
        self._bus: Optional[ProxyBus] = None
        self._config: Dict[str, Any] = {}
        self._closed = threading.Event()
        self._full = False

    def functions(self) -> Dict[str, bool]:
        return {"message": self._bus is not None}

    def open(self, config: Dict[str, Any], host: Host) -> None:
        self._config = config
        in_turn = _IMPORTS.acquire(timeout=IMPORT_PATIENCE)
        try:
            kind = self._entry.point.load()
        except BaseException as error:
            raise ToolError("ImportError", f"{self._entry.target} cannot be imported: {_text(error)}") from error
        finally:
            if in_turn:
                _IMPORTS.release()
        if config.get("bus") == "proxy":
            self._bus = ProxyBus(host)
        elif config.get("bus") is not None:
            log.warning("`bus` is %r; the only value is \"proxy\". The toolbox gets no bus", config["bus"])
        try:
            self._box = construct(kind, self._entry.name, config, self._bus)
        except BaseException as error:
            raise ToolError("ToolboxError", f"{self._entry.target} cannot be constructed: {_text(error)}") from error
        own, served_as = self._box.toolbox_id, self.manifest["id"]
        if own != served_as:
            log.warning("entry point `%s` calls itself `%s`; it is served as `%s`", self._entry.name, own, served_as)
        self._discover()
        if not self._box.tools:
            threading.Thread(target=self._discover_later, args=(host,), name="discover", daemon=True).start()

    def tools(self) -> List[Dict[str, Any]]:
        if not self._box.tools:
            self._discover()
        listed: List[Dict[str, Any]]
        try:
            listed = self._box.tool_json_list
        except Exception:
            listed = self._one_by_one()
        effects = self._config.get("effects")
        for one in listed:
            # `call_tool` does it, by more than the schemas say: defaults, validators and both names of a field.
            one["validates"] = True
            one["effect"] = effect_of(self._entry.distribution, self._entry.name, one["name"], effects)
        return listed

    def perform(self, context: Context, action: str, params: Dict[str, Any]) -> Any:
        if self._full:
            raise ToolError("BusyError", f"{MAX_ABANDONED} calls never ended; the program is being replaced, try again")
        try:
            result = self._box.call_tool(action, params)
        except Exception as error:
            raise explain(error) from error
        return result.model_dump(mode="json")

    def abandoned(self, threads: int) -> None:
        log.warning("a call was cancelled and goes on; Python cannot end it. %d of %d such calls", threads, MAX_ABANDONED)
        if threads >= MAX_ABANDONED and not self._full:
            self._full = True
            self._replace(f"{threads} cancelled calls of `{self.manifest['id']}` never ended")

    def message(self, topic: str, data: Dict[str, Any]) -> None:
        if self._bus is not None:
            self._bus.deliver(topic, data)

    def close(self) -> None:
        """Calls the toolbox's own `close`, or `stop`, where it has one; OPM's base class has neither."""
        self._closed.set()
        end = getattr(self._box, "close", None) or getattr(self._box, "stop", None)
        if callable(end):
            end()

    def _discover(self) -> bool:
        """Asks a toolbox without tools for them. False if that failed: it may succeed later."""
        if self._box.tools:
            return True
        try:
            self._box.refresh_tools()
            return True
        except Exception as error:
            log.warning("no tools of %s yet: %s", self._entry.name, _text(error))
            return False

    def _discover_later(self, host: Host) -> None:
        delay = FIRST_RETRY
        empty = 0
        while empty < EMPTY_RETRIES and not self._closed.wait(delay):
            found = self._discover()
            if self._box.tools:
                host.tools_changed()
                return
            empty += found
            delay = min(2 * delay, LAST_RETRY)

    def _one_by_one(self) -> List[Dict[str, Any]]:
        """The tools, without those that have no schemas."""
        listed = []
        for tool in list(self._box.tools.values()):
            try:
                listed.append({
                    "name": tool.name,
                    "description": tool.description,
                    "argument_schema": tool.argument_schema.model_json_schema(),
                    "output_schema": tool.output_schema.model_json_schema(),
                })
            except Exception as error:
                log.error("tool `%s` is left out, for it has no schemas: %s", getattr(tool, "name", "?"), _text(error))
        return listed


def construct(kind: Any, toolbox_id: str, config: Dict[str, Any], bus: Any) -> Any:
    """Makes the toolbox by the first of these that it takes: (config, bus), (config), (toolbox_id, config, bus), ()."""
    shapes: List[Dict[str, Any]] = [
        {"config": config, "bus": bus},
        {"config": config},
        {"toolbox_id": toolbox_id, "config": config, "bus": bus},
        {},
    ]
    signature = inspect.signature(kind)
    for arguments in shapes:
        try:
            signature.bind(**arguments)
        except TypeError:
            continue
        return kind(**arguments)
    raise TypeError(f"{signature} cannot be constructed; expected a constructor that takes (config, bus), (config), (toolbox_id, config, bus) or ()")


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
