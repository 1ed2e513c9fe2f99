"""JSON Schemas of Python types, and values of those types from JSON and back.

Supported: int, float, str, bool, None, Any, list, dict with text keys, Optional, Union, Literal, Enum, dataclasses and
TypedDict. `Annotated[T, "text"]` describes a value, `Annotated[float, Field("text", minimum=0)]` also limits it.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import inspect
import typing
from typing import Annotated, Any, Dict, List, Literal, Optional, Tuple, Union

try:
    from types import UnionType  # int | None, from Python 3.10
except ImportError:
    UnionType = None  # type: ignore[assignment, misc]

Schema = Dict[str, Any]

_SIMPLE = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}


class Field:
    """Describes and limits a value, in `Annotated`. The keywords are those of JSON Schema, such as `minimum`."""

    def __init__(self, description: Optional[str] = None, **keywords: Any) -> None:
        self.schema: Schema = dict(keywords)
        if description is not None:
            self.schema["description"] = description


class BadValue(ValueError):
    """A value is not of the type that was declared. The text names the value."""


def hints_of(thing: Any) -> Dict[str, Any]:
    """The type hints of a function or class, with `Annotated` kept and names resolved."""
    return typing.get_type_hints(thing, include_extras=True)


def schema_of(hint: Any, within: Tuple[Any, ...] = ()) -> Schema:
    """The schema of a type. Raises TypeError for a type that is not supported, and for one that contains itself."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return {}
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if origin is Annotated:
        schema = schema_of(inner[0], within)
        for note in inner[1:]:
            if isinstance(note, (str, Field)):
                schema.update(note.schema if isinstance(note, Field) else {"description": note})
        return schema
    if origin is Literal:
        return {"enum": list(inner)}
    if _is_union(origin):
        return {"anyOf": [schema_of(one, within) for one in inner]}
    if hint in (list, tuple) or origin in (list, tuple, collections.abc.Sequence):
        items = [one for one in inner if one is not Ellipsis]
        if origin is tuple and Ellipsis not in inner:
            count = len(items)
            prefix = [schema_of(one, within) for one in items]
            return {"type": "array", "prefixItems": prefix, "minItems": count, "maxItems": count}
        return {"type": "array", "items": schema_of(items[0], within)} if items else {"type": "array"}
    if hint is dict or origin in (dict, collections.abc.Mapping):
        if not inner:
            return {"type": "object"}
        if inner[0] is not str:
            raise TypeError(f"{hint} has keys that are not text; the keys of a JSON object are text")
        return {"type": "object", "additionalProperties": schema_of(inner[1], within)}
    if inspect.isclass(hint):
        if hint in within:
            raise TypeError(f"{hint.__name__} contains itself; use dict for the inner one")
        if issubclass(hint, enum.Enum):
            return {"enum": [one.value for one in hint]}
        if dataclasses.is_dataclass(hint) or _is_typed_dict(hint):
            return _object(hint, within + (hint,))
    raise TypeError(
        f"{hint!r} has no JSON Schema; use int, float, str, bool, list, dict, Optional, Literal, Enum, a dataclass or a "
        "TypedDict"
    )


def is_object(schema: Schema) -> bool:
    """Whether a value of this schema is always an object."""
    return schema.get("type") == "object"


def from_json(value: Any, hint: Any, where: str) -> Any:
    """Makes a value of a type out of JSON. `where` names the value in errors. Raises BadValue."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin is Annotated:
        return from_json(value, inner[0], where)
    if hint in _SIMPLE:
        return _simple(value, hint, where)
    if origin is Literal:
        if not any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in inner):
            raise BadValue(f"{where} is {value!r}; expected one of {list(inner)}")
        return value
    if _is_union(origin):
        return _one_of(value, inner, where)
    if hint in (list, tuple) or origin in (list, tuple, collections.abc.Sequence):
        return _sequence(value, hint, where)
    if hint is dict or origin in (dict, collections.abc.Mapping):
        _expect(isinstance(value, dict), value, "an object", where)
        return {key: from_json(one, inner[1], f"{where}.{key}") for key, one in value.items()} if inner else value
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        try:
            return hint(value)
        except ValueError:
            raise BadValue(f"{where} is {value!r}; expected one of {[one.value for one in hint]}") from None
    return _instance(value, hint, where)


def to_plain(value: Any) -> Any:
    """Makes plain JSON values of what a tool returns: dataclasses and enums become objects and their values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return to_plain(value.value)
    if isinstance(value, dict):
        return {key: to_plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(one) for one in value]
    return value


def _is_union(origin: Any) -> bool:
    return origin is Union or (UnionType is not None and origin is UnionType)


def _is_typed_dict(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__required_keys__")


def _fields(hint: Any) -> List[Tuple[str, Any, bool, Any]]:
    """The fields of a dataclass or a TypedDict: name, type, whether it is required, default."""
    if dataclasses.is_dataclass(hint):
        hints = hints_of(hint)
        missing = dataclasses.MISSING
        return [
            (one.name, hints[one.name], one.default is missing and one.default_factory is missing,
             one.default if one.default is not missing else missing)
            for one in dataclasses.fields(hint)
        ]
    return [(name, one, name in hint.__required_keys__, dataclasses.MISSING) for name, one in hints_of(hint).items()]


def _object(hint: Any, within: Tuple[Any, ...]) -> Schema:
    properties: Dict[str, Schema] = {}
    required: List[str] = []
    for name, kind, is_required, default in _fields(hint):
        properties[name] = schema_of(kind, within)
        if is_required:
            required.append(name)
        elif default is not dataclasses.MISSING:
            properties[name]["default"] = to_plain(default)
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    doc = inspect.getdoc(hint) if hint.__dict__.get("__doc__") else None
    if doc and not doc.startswith(f"{hint.__name__}("):  # dataclasses write a signature where there is no docstring
        schema["description"] = doc
    return schema


def _expect(good: bool, value: Any, wanted: str, where: str) -> None:
    if not good:
        raise BadValue(f"{where} is {value!r}; expected {wanted}")


def _simple(value: Any, hint: Any, where: str) -> Any:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is float:
        _expect(is_number, value, "a number", where)
        return float(value)
    if hint is int:
        _expect(is_number and (isinstance(value, int) or value.is_integer()), value, "an integer", where)
        return int(value)
    _expect(isinstance(value, hint), value, _SIMPLE[hint], where)
    return value


def _one_of(value: Any, kinds: Tuple[Any, ...], where: str) -> Any:
    problems = []
    for kind in kinds:
        try:
            return from_json(value, kind, where)
        except BadValue as problem:
            problems.append(str(problem))
    raise BadValue(" or ".join(problems))


def _sequence(value: Any, hint: Any, where: str) -> Any:
    _expect(isinstance(value, list), value, "an array", where)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    items = [one for one in inner if one is not Ellipsis]
    if origin is tuple and items and Ellipsis not in inner:
        _expect(len(value) == len(items), value, f"{len(items)} items", where)
        made = [from_json(one, kind, f"{where}[{at}]") for at, (one, kind) in enumerate(zip(value, items))]
    elif items:
        made = [from_json(one, items[0], f"{where}[{at}]") for at, one in enumerate(value)]
    else:
        made = value
    return tuple(made) if tuple in (hint, origin) else made


def _instance(value: Any, hint: Any, where: str) -> Any:
    _expect(isinstance(value, dict), value, "an object", where)
    made = {}
    for name, kind, is_required, _ in _fields(hint):
        if name in value:
            made[name] = from_json(value[name], kind, f"{where}.{name}")
        elif is_required:
            raise BadValue(f"{where}.{name} is missing")
    return hint(**made)
