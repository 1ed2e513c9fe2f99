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
    """What a mirrored tool returned. Its text is JSON, because loops show models the text."""

    model_config = ConfigDict(extra="allow")
    schema_of_service: ClassVar[Dict[str, Any]] = {}

    @classmethod
    def model_json_schema(cls, *_args: Any, **_kwargs: Any) -> Dict[str, Any]:
        """The schema that the service states."""
        return deepcopy(cls.schema_of_service)

    def __str__(self) -> str:
        return json.dumps(self.model_dump(), ensure_ascii=False)


def model(base: Type[Any], name: str, schema: Dict[str, Any]) -> Type[Any]:
    """A model of this schema."""
    return type(base)(f"{name}{base.__name__}", (base,), {"__module__": __name__, "schema_of_service": schema})
