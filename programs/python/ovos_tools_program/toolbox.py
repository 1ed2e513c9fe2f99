"""The class that authors derive their toolbox from."""

from __future__ import annotations

import inspect
import logging
from typing import Any, Dict, List, NoReturn, Optional, Sequence

from .box import Box
from .errors import ToolError
from .host import Host
from .main import main
from .run import Context
from .tools import Function, functions_of

_MOVING = ("motion", "safe", "stop")


class Toolbox:
    """A toolbox: methods with `@tool("read")` and so on are its tools; the docstring of the class is its description.

    One object serves from `open` to `close`. Tools run on threads of their own, several at a time; `async` tools share one
    event loop. What a toolbox overrides of the methods below is what it can do.
    """

    #: `[a-z0-9_-]+`. The configuration has to allow it.
    id: str = ""
    version: str = "0.1.0"
    licence: str = ""
    #: It holds hardware: on a reload the old copy closes before the new one opens.
    exclusive: bool = False
    #: JSON Schema of its section of the configuration.
    config_schema: Optional[Dict[str, Any]] = None
    #: Bus topics whose messages it gets, and topics that it may ask.
    subscribes: Sequence[str] = ()
    requests: Sequence[str] = ()
    #: The service. There from `open` on.
    host: Host

    def open(self, config: Dict[str, Any]) -> None:
        """Opens the machine and brings it to rest; never moves it. Raise to refuse."""

    def close(self) -> None:
        """Closes it. Join the threads that you started."""

    def halt(self, subsystems: List[str], emergency: bool) -> None:
        """Sends the commands that end motion of these subsystems (`all`: everything) within 50 ms, and does not wait.

        Without `emergency` the machine holds its position with power. Called on any thread, also beside itself.
        """

    def resume(self) -> None:
        """Raise if the emergency stop must not be lifted now. Never move."""

    @classmethod
    def safe_stop(cls, config: Dict[str, Any]) -> None:
        """Brings the machine to rest from nothing, in a fresh process, within 2 s: another one has died."""

    def message(self, topic: str, data: Dict[str, Any]) -> None:
        """Takes a bus message that `subscribes` names."""

    def may_close(self) -> None:
        """Raise if a reload must not close the toolbox now."""

    @classmethod
    def run(cls) -> NoReturn:
        """Serves the toolbox to the service that started this program. Log lines from `INFO` up reach its log."""
        if logging.getLogger().level == logging.WARNING:
            logging.getLogger().setLevel(logging.INFO)
        box = AuthorsBox(cls)
        main(lambda _: AuthorsBox(cls), box.manifest, safe_stop=cls.safe_stop if box.has("safe_stop") else None)


class AuthorsBox(Box):
    """A class derived from `Toolbox`, as the protocol sees it."""

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self._object: Any = None
        self._functions: Dict[str, Function] = functions_of(kind)
        self._tools = [one.definition() for one in self._functions.values() if one.spec.kind != "action"]
        self.manifest = self._manifest()
        moving = [name for name, one in self._functions.items() if one.spec.effect in _MOVING]
        if moving and not self.has("halt"):
            raise TypeError(f"{kind.__name__} has tools that move something ({', '.join(moving)}), and no `halt`")

    def has(self, method: str) -> bool:
        """Whether the author overrides a method."""
        own = inspect.getattr_static(self._kind, method)
        return own is not inspect.getattr_static(Toolbox, method)

    def _manifest(self) -> Dict[str, Any]:
        kind: Any = self._kind
        if not kind.id:
            raise TypeError(f"{kind.__name__} has no `id`; write id = \"my_toolbox\" in the class")
        doc = kind.__dict__.get("__doc__") or ""
        made: Dict[str, Any] = {
            "id": kind.id,
            "version": kind.version,
            "description": inspect.cleandoc(doc),
            "licence": kind.licence,
            "exclusive": kind.exclusive,
            "subscribes": list(kind.subscribes),
            "requests": list(kind.requests),
        }
        if kind.config_schema is not None:
            made["config_schema"] = kind.config_schema
        return made

    def functions(self) -> Dict[str, bool]:
        """By what the author overrides."""
        specs = [one.spec for one in self._functions.values()]
        return {
            "plan": any(one.kind == "planned" or one.subsystems for one in specs),
            "conclude": any(one.conclude or one.effect in ("stop", "resume") for one in specs),
            "message": self.has("message"),
            "halt": self.has("halt"),
            "safe_stop": self.has("safe_stop"),
        }

    def open(self, config: Dict[str, Any], host: Host) -> None:
        self._object = self._kind()
        self._object.host = host
        self._object.open(config)

    def tools(self) -> List[Dict[str, Any]]:
        return self._tools

    def plan(self, tool: str, args: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        function = self._functions[tool]
        spec = function.spec
        if spec.kind == "planned":
            actions = function.call(self._object, args)
            for one in actions:
                if one.name not in self._functions:
                    raise ToolError("PlanError", f"there is no method `{one.name}` with @action or @tool")
            return {"actions": [one.to_json() for one in actions]}
        if not spec.subsystems:
            return None
        return {"actions": [{"id": tool, "name": tool, "params": args, "subsystems": list(spec.subsystems)}]}

    def conclude(self, tool: str, args: Dict[str, Any], report: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        function = self._functions[tool]
        if function.spec.conclude is not None:
            return {"output": function.output(function.spec.conclude(self._object, args, report))}
        if function.spec.effect in ("stop", "resume"):
            return {"output": function.output(function.call(self._object, args))}
        return None

    def perform(self, context: Context, action: str, params: Dict[str, Any]) -> Any:
        function = self._functions[action]
        result = function.call(self._object, params, context)
        if inspect.isawaitable(result):
            return _awaited(function, result)
        return function.output(result)

    def halt(self, subsystems: List[str], emergency: bool) -> None:
        self._object.halt(subsystems, emergency)

    def resume(self) -> None:
        self._object.resume()

    def message(self, topic: str, data: Dict[str, Any]) -> None:
        self._object.message(topic, data)

    def may_close(self) -> None:
        self._object.may_close()

    def close(self) -> None:
        self._object.close()


async def _awaited(function: Function, result: Any) -> Any:
    return function.output(await result)
