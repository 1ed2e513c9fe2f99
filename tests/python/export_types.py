"""Validates exported tools with the vendors' own published types.

Reads {"openai": [..], "openai_responses": [..], "anthropic": [..], "mcp": [..], "hume": [..]} from stdin, prints what
was checked, and exits with 1 and a text when a tool does not fit. Every check is first shown definitions that are
wrong, and fails when it takes one: a check that cannot fail is none.
"""

import copy
import json
import re
import sys
from importlib.metadata import version

from agents.strict_schema import ensure_strict_json_schema
from anthropic.types.tool_param import InputSchemaTyped, ToolParam
from google.genai import types as google
from hume.empathic_voice.types import SessionSettings
from hume.empathic_voice.types import Tool as HumeTool
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp_types import _v2025_11_25, _v2026_07_28
from mcp_types import Tool as McpTool
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam
from openai.types.shared_params import FunctionDefinition
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_ai.profiles.google import GoogleJsonSchemaTransformer
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer
from voluptuous_openapi import convert_to_voluptuous

# The vendors' documented limit for names, which their types do not carry.
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")



def closed(typed_dict):
    """A request type as the vendor's server sees it: unknown keys are refused."""
    typed_dict.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)
    return typed_dict


closed(FunctionDefinition)
chat_type = TypeAdapter(closed(ChatCompletionFunctionToolParam))
responses_type = TypeAdapter(closed(FunctionToolParam))
anthropic_type = TypeAdapter(closed(ToolParam))
anthropic_schema_type = TypeAdapter(InputSchemaTyped)


def expect(condition, text):
    if not condition:
        raise ValueError(text)


def model_check(model, tool):
    """For models that allow or ignore unknown keys: nothing may get lost on the way through."""
    known = {field.alias or name for name, field in model.model_fields.items()}
    expect(set(tool) <= known, "unknown keys %s" % sorted(set(tool) - known))
    parsed = model.model_validate(tool)
    dumped = parsed.model_dump(mode="json", by_alias=True, exclude_unset=True)
    expect(dumped == tool, "read back as %s" % json.dumps(dumped))


def object_schema(schema):
    expect(isinstance(schema, dict) and schema.get("type") == "object", "schema is not one of an object: %s" % schema)
    expect(isinstance(schema.get("properties"), dict), "schema without properties: %s" % schema)


def openai(tool):
    chat_type.validate_python(tool)
    object_schema(tool["function"]["parameters"])
    expect(NAME.fullmatch(tool["function"]["name"]), "name")


def openai_responses(tool):
    responses_type.validate_python(tool)
    object_schema(tool["parameters"])
    expect(NAME.fullmatch(tool["name"]), "name")


def anthropic(tool):
    anthropic_type.validate_python(tool)
    anthropic_schema_type.validate_python(tool["input_schema"], strict=True)
    object_schema(tool["input_schema"])
    expect(NAME.fullmatch(tool["name"]), "name")


def mcp(tool):
    for model in (McpTool, _v2025_11_25.Tool, _v2026_07_28.Tool):
        model_check(model, tool)
    hints = {field.alias or name for name, field in _v2025_11_25.ToolAnnotations.model_fields.items()}
    expect(set(tool.get("annotations", {})) <= hints, "unknown annotations")
    object_schema(tool["inputSchema"])
    expect(NAME.fullmatch(tool["name"]), "name")


def hume(tool):
    model_check(HumeTool, tool)
    SessionSettings.model_validate({"type": "session_settings", "tools": [tool]})
    expect(tool["type"] == "function", "type")
    object_schema(json.loads(tool["parameters"]))
    expect(NAME.fullmatch(tool["name"]), "name")


CHECKS = {
    "openai": (openai, "openai", "function.parameters"),
    "openai_responses": (openai_responses, "openai", "parameters"),
    "anthropic": (anthropic, "anthropic", "input_schema"),
    "mcp": (mcp, "mcp", "inputSchema"),
    "hume": (hume, "hume", "parameters"),
}


def home_assistant(name, schema):
    """Home Assistant leaves out the whole server for one schema that this refuses."""
    convert_to_voluptuous(schema)


def google_genai(name, schema):
    google.FunctionDeclaration(name=name, description="", parameters=schema)


def openai_agents(name, schema):
    """Strict mode has no objects with any keys: a tool with one is offered without it."""
    if not any_keys(schema):
        ensure_strict_json_schema(copy.deepcopy(schema))


def langchain(name, schema):
    tool = StructuredTool.from_function(func=lambda **_: None, name=name, description="d", args_schema=copy.deepcopy(schema))
    told = convert_to_openai_tool(tool)["function"]["parameters"]
    expect(set(told["properties"]) == set(schema["properties"]), "arguments got lost: %s" % told)


def pydantic_ai(name, schema):
    transformer = OpenAIJsonSchemaTransformer(copy.deepcopy(schema), strict=None if any_keys(schema) else True)
    told = transformer.walk()
    expect(set(told["properties"]) == set(schema["properties"]), "arguments got lost: %s" % told)
    GoogleJsonSchemaTransformer(copy.deepcopy(schema), strict=None).walk()


def any_keys(schema):
    """Whether an object in it has no properties of its own."""
    if isinstance(schema, dict):
        return bool(schema.get("additionalProperties")) or any(any_keys(inner) for inner in schema.values())
    return isinstance(schema, list) and any(any_keys(inner) for inner in schema)


#: Each with a schema that it refuses.
CONVERTERS = {
    home_assistant: {"type": "object", "properties": {"x": {"description": "no type"}}},
    google_genai: {"type": "object", "properties": {"x": {"oneOf": [{"const": 1}]}}},
    openai_agents: {"type": "object", "properties": {"x": {"$ref": "#/nowhere", "description": "d"}}},
    langchain: None,
    pydantic_ai: None,
}


def spoiled(tool, schema_path):
    """The same definition with one thing wrong."""
    *parents, schema_key = schema_path.split(".")

    def holder(copied):
        for parent in parents:
            copied = copied[parent]
        return copied

    for what, spoil in [
        ("an unknown key", lambda inner: inner.update(surprise=1)),
        ("no name", lambda inner: inner.pop("name")),
        ("a name with a dot", lambda inner: inner.update(name="a.b")),
        ("a name that is a number", lambda inner: inner.update(name=5)),
        ("a description that is a list", lambda inner: inner.update(description=["x"])),
        ("no schema", lambda inner: inner.pop(schema_key)),
        ("a schema that is a number", lambda inner: inner.update({schema_key: 5})),
        ("a schema of a string", lambda inner: inner.update({schema_key: {"type": "string"}})),
        ("the schema as the other kind", lambda inner: inner.update({schema_key: other_kind(inner[schema_key])})),
    ]:
        copied = copy.deepcopy(tool)
        spoil(holder(copied))
        yield what, copied


def other_kind(schema):
    return json.loads(schema) if isinstance(schema, str) else json.dumps(schema)


def main():
    exported = json.load(sys.stdin)
    for name, (check, package, schema_path) in CHECKS.items():
        tools = exported[name]
        if not tools:
            sys.exit("%s: nothing was exported" % name)
        for what, wrong in spoiled(tools[0], schema_path):
            try:
                check(wrong)
            except (ValidationError, ValueError, KeyError, TypeError):
                continue
            sys.exit("%s: the check takes %s, so it proves nothing" % (name, what))
        for tool in tools:
            try:
                check(tool)
            except (ValidationError, ValueError, KeyError, TypeError) as error:
                sys.exit("%s: %s does not fit the types of %s %s: %s" % (name, json.dumps(tool), package, version(package), error))
        print("%s: %d tools fit the types of %s %s" % (name, len(tools), package, version(package)))


    for convert, refused in CONVERTERS.items():
        if refused is not None:
            try:
                convert("tool", refused)
            except Exception:
                pass
            else:
                sys.exit("%s: the check takes %s, so it proves nothing" % (convert.__name__, refused))
        for tool in exported["openai"]:
            function = tool["function"]
            try:
                convert(function["name"], function["parameters"])
            except Exception as error:
                sys.exit("%s: %s cannot be converted: %r" % (convert.__name__, json.dumps(tool), error))
        print("%s converts %d tools" % (convert.__name__, len(exported["openai"])))


main()
