"""Pydantic models that carry a JSON Schema of the service unchanged.

The service coerces and validates, with better errors than a second validation could give, and a model built from a schema
would lose what pydantic has no word for. So these models take everything, and say the service's schema where they are asked
for theirs.
"""
import json
from copy import deepcopy
from typing import Any, ClassVar, Dict, Type

from ovos_plugin_manager.templates.agent_tools import ToolArguments, ToolOutput
from pydantic import ConfigDict


class Arguments(ToolArguments):
    """Arguments of a mirrored tool."""

    model_config = ConfigDict(extra="allow")
    schema_of_service: ClassVar[Dict[str, Any]] = {}

    @classmethod
    def model_json_schema(cls, *_args: Any, **_kwargs: Any) -> Dict[str, Any]:
        """The schema that the service gives to models."""
        return deepcopy(cls.schema_of_service)


class Output(ToolOutput):
    """What a tool returned. Its text is JSON, because loops show models the text."""

    model_config = ConfigDict(extra="allow")

    @classmethod
    def model_json_schema(cls, *_args: Any, **_kwargs: Any) -> Dict[str, Any]:
        """Any object: a model reads the result itself, and loops put every schema into the prompt."""
        return {"type": "object"}

    def __str__(self) -> str:
        return json.dumps(self.model_dump(), ensure_ascii=False)


def arguments_model(name: str, schema: Dict[str, Any]) -> Type[Arguments]:
    """A model of arguments with this schema."""
    return type(Arguments)(f"{name}Arguments", (Arguments,), {"__module__": __name__, "schema_of_service": schema})
