"""Tools out of functions: their names, descriptions, schemas and effects."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar

from .errors import ToolError
from .run import Context
from .schema import BadValue, from_json, hints_of, is_object, schema_of, to_plain

F = TypeVar("F", bound=Callable[..., Any])
EFFECTS = ("read", "write", "motion", "safe", "stop", "resume")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}\Z")
_MARK = "_ovos_tool"


@dataclasses.dataclass
class Action:
    """One step of a planned tool. `name` is a method with `@action`, or another tool."""

    name: str
    params: Dict[str, Any] = dataclasses.field(default_factory=dict)
    subsystems: Sequence[str] = ()
    #: Ids or names of the actions that come first.
    after: Sequence[str] = ()
    #: Unique in the plan; may be left out.
    id: Optional[str] = None
    #: Seconds that it may take.
    timeout: Optional[float] = None
    #: Its own effect, where it is not the tool's.
    effect: Optional[str] = None

    def to_json(self) -> Dict[str, Any]:
        """As schemas/abi/action.json describes it."""
        made: Dict[str, Any] = {
            "id": self.id,
            "name": self.name,
            "params": to_plain(self.params),
            "subsystems": list(self.subsystems),
            "dependencies": list(self.after),
            "timeout_ms": None if self.timeout is None else int(self.timeout * 1000),
            "effect": self.effect,
        }
        return {key: one for key, one in made.items() if one is not None}


@dataclasses.dataclass
class Spec:
    """What a decorator says of a function."""

    kind: str
    effect: str
    function: Callable[..., Any]
    name: str = ""
    subsystems: Tuple[str, ...] = ()
    timeout: Optional[float] = None
    category: Optional[str] = None
    conclude: Optional[Callable[..., Any]] = None


def tool(
    effect: str, *, name: Optional[str] = None, subsystems: Sequence[str] = (), timeout: Optional[float] = None,
    category: Optional[str] = None,
) -> Callable[[F], F]:
    """Makes a method a tool. `effect` says what it does to the world and has no default.

    `read` changes nothing, `write` changes something without motion, `motion` moves a machine, `safe` brings it to safety,
    `stop` and `resume` are an emergency stop and its end. `subsystems` names what a moving tool uses; calls that share one
    wait for each other. `timeout` is in seconds.
    """
    return _mark("tool", effect, name, subsystems, timeout, category)


def planned(
    effect: str, *, name: Optional[str] = None, timeout: Optional[float] = None, category: Optional[str] = None
) -> Callable[[F], F]:
    """Makes a method a tool of several actions. It returns them as a list of `Action`, and does no IO.

    Its result is what a method with `conclude` makes, or else an object of the actions' outputs.
    """
    return _mark("planned", effect, name, (), timeout, category)


def action(function: F) -> F:
    """Makes a method an action, for the plans of `planned` tools."""
    setattr(function, _MARK, Spec("action", "", function))
    return function


def conclude(of: Callable[..., Any]) -> Callable[[F], F]:
    """Marks the method that makes the result of a `planned` tool: `(self, args, report)`, also of a call that failed.

    `args` are the tool's arguments, `report` is what schemas/abi/report.json describes.
    """
    spec = getattr(of, _MARK, None)
    if not isinstance(spec, Spec) or spec.kind != "planned":
        raise TypeError("write @conclude(method) below a method with @planned")

    def mark(function: F) -> F:
        spec.conclude = function
        return function

    return mark


def _mark(
    kind: str, effect: str, name: Optional[str], subsystems: Sequence[str], timeout: Optional[float], category: Optional[str]
) -> Callable[[F], F]:
    if effect not in EFFECTS:
        raise TypeError(f"the effect of a tool is one of {', '.join(EFFECTS)}, not {effect!r}; write @{kind}(\"read\")")

    def mark(function: F) -> F:
        spec = Spec(kind, effect, function, name or function.__name__, tuple(subsystems), timeout, category)
        setattr(function, _MARK, spec)
        return function

    return mark


class Function:
    """A method with `@tool`, `@planned` or `@action`: how it is described and called."""

    def __init__(self, owner: str, spec: Spec) -> None:
        self.spec = spec
        self._where = f"{owner}.{spec.function.__name__}"
        self._hints = hints_of(spec.function)
        self._context: Optional[str] = None
        self._parameters: List[Tuple[str, Any, Any]] = []
        for name, one in list(inspect.signature(spec.function).parameters.items())[1:]:
            if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY):
                raise TypeError(f"{self._where}: the arguments of a tool have names; `{one}` has none")
            hint = self._hints.get(name, Any)
            if hint is Context:
                self._context = name
            else:
                self._parameters.append((name, hint, one.default))
        result = self._hints.get("return", Dict[str, Any])
        if spec.kind == "planned":
            result = hints_of(spec.conclude).get("return", Dict[str, Any]) if spec.conclude else Dict[str, Any]
        self._output = self._described(result, "the result")
        if not _NAME.match(spec.name or "_"):
            raise TypeError(f"{self._where}: `{spec.name}` cannot be the name of a tool: expected letters, digits, _ and -, at most 64")

    def definition(self) -> Dict[str, Any]:
        """As schemas/abi/tool.json describes it."""
        description, arguments = _read_doc(self.spec.function)
        properties: Dict[str, Any] = {}
        for name, hint, default in self._parameters:
            properties[name] = self._described(hint, f"`{name}`")
            if name in arguments:
                properties[name].setdefault("description", arguments[name])
            if default is not inspect.Parameter.empty:
                properties[name]["default"] = to_plain(default)
        schema: Dict[str, Any] = {"type": "object", "properties": properties}
        required = [name for name, _, default in self._parameters if default is inspect.Parameter.empty]
        if required:
            schema["required"] = required
        if self.spec.effect in ("motion", "write"):
            # The service refuses what such a tool does not know; the schema says so.
            schema["additionalProperties"] = False
        output = self._output
        if output == {"type": "null"}:
            output = {"type": "object", "properties": {}}
        elif not is_object(output):
            output = {"type": "object", "properties": {"result": output}, "required": ["result"]}
        made: Dict[str, Any] = {
            "name": self.spec.name,
            "description": description,
            "effect": self.spec.effect,
            "argument_schema": schema,
            "output_schema": output,
        }
        if self.spec.category:
            made["category"] = self.spec.category
        if self.spec.timeout is not None:
            made["timeout_ms"] = int(self.spec.timeout * 1000)
        return made

    def call(self, owner: Any, args: Dict[str, Any], context: Optional[Context] = None) -> Any:
        """Calls the method with JSON arguments. Raises ToolError of kind ValueError for arguments of another type."""
        values: Dict[str, Any] = {}
        try:
            for name, hint, default in self._parameters:
                if name in args:
                    values[name] = from_json(args[name], hint, f"argument `{name}`")
                elif default is inspect.Parameter.empty:
                    raise BadValue(f"argument `{name}` is missing")
        except BadValue as problem:
            raise ToolError("ValueError", str(problem)) from None
        if self._context is not None:
            values[self._context] = context
        return self.spec.function(owner, **values)

    def output(self, value: Any) -> Any:
        """What the method returned, as JSON: an object. Other values become `{"result": value}`."""
        plain = to_plain(value)
        if self._output == {"type": "null"}:
            return {}
        return plain if is_object(self._output) else {"result": plain}

    def _described(self, hint: Any, what: str) -> Dict[str, Any]:
        try:
            return schema_of(hint)
        except TypeError as error:
            raise TypeError(f"{self._where}: {what}: {error}") from None


def functions_of(owner: type) -> Dict[str, Function]:
    """The tools and actions of a class, by name, in the order in which they are written."""
    made: Dict[str, Function] = {}
    seen: Dict[str, Any] = {}
    for one in reversed(owner.__mro__):
        seen.update(vars(one))
    for attribute, value in seen.items():
        spec = getattr(value, _MARK, None)
        if isinstance(spec, Spec):
            name = spec.name or attribute
            if name in made:
                raise TypeError(f"{owner.__name__} has two tools or actions `{name}`")
            made[name] = Function(owner.__name__, spec)
    return made


def _read_doc(function: Callable[..., Any]) -> Tuple[str, Dict[str, str]]:
    """The description of a function, and of its arguments (the lines below `Args:`)."""
    text, _, rest = (inspect.getdoc(function) or "").partition("\nArgs:\n")
    arguments: Dict[str, str] = {}
    last = ""
    for line in rest.splitlines():
        found = re.match(r"\s+(\w+)(?:\s*\([^)]*\))?:\s*(.*)", line)
        if found:
            last = found[1]
            arguments[last] = found[2]
        elif line.startswith("    ") and last:
            arguments[last] += " " + line.strip()
        elif line and not line[0].isspace():
            break
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text.strip()), arguments
