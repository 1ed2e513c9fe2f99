"""Tools as a prompt has them: a model that reads them there needs names, texts, and the arguments as a line. Pure."""
import json
from typing import Any, Dict

from ovos_plugin_manager.templates.agent_tools import AgentTool

#: What stands beside the type of an argument, with the word for it.
BOUNDS = (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("exclusiveMaximum", "<"), ("minLength", "length >="),
          ("maxLength", "length <="), ("minItems", "items >="), ("maxItems", "items <="), ("pattern", "matches"))


#: The largest part of a prompt that tools should take, in bytes.
PROMPT = 10_000


def described(tool: AgentTool) -> Dict[str, str]:
    """A tool as a prompt has it."""
    return {"name": tool.name, "description": line(tool.description),
            "argument_schema": signature(tool.argument_schema.model_json_schema())}


def signature(schema: Dict[str, Any]) -> str:
    """The arguments of a tool: `{arm?: 'left'|'right' = 'left' (which arm), times?: integer >= 1 <= 5}`. `?` marks what may be
    left out, `=` what is meant then.
    """
    return _object(schema)


def line(text: str) -> str:
    """A text without its line ends, which JSON would escape."""
    return " ".join(text.split())


def _object(schema: Dict[str, Any]) -> str:
    required = schema.get("required", ())
    parts = [_argument(name, name in required, argument) for name, argument in schema.get("properties", {}).items()]
    return "{" + ", ".join(parts) + "}"


def _argument(name: str, required: bool, schema: Any) -> str:
    schema = schema if isinstance(schema, dict) else {}
    said = f"{name}{'' if required else '?'}: {_type(schema)}"
    bounds = [f"{word} {schema[key]}" for key, word in BOUNDS if key in schema]
    if bounds:
        said += f" {' '.join(bounds)}"
    if schema.get("default") is not None:
        said += f" = {_value(schema['default'])}"
    text = line(schema.get("description") or "")
    return f"{said} ({text.rstrip('.')})" if text else said


def _type(schema: Dict[str, Any]) -> str:
    if "const" in schema:
        return _value(schema["const"])
    if "enum" in schema:
        return "|".join(map(_value, schema["enum"]))
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return "|".join(dict.fromkeys(_type(one) for one in schema[key] if isinstance(one, dict)))
    kinds = schema.get("type", "any")
    return "|".join(_kind(kind, schema) for kind in (kinds if isinstance(kinds, list) else [kinds]))


def _kind(kind: str, schema: Dict[str, Any]) -> str:
    if kind == "object" and schema.get("properties"):
        return _object(schema)
    if kind == "array" and isinstance(schema.get("items"), dict):
        return f"[{_type(schema['items'])}]"
    return kind


def _value(value: Any) -> str:
    # Single quotes, because the line stands in JSON, where others are escaped.
    return f"'{value}'" if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
