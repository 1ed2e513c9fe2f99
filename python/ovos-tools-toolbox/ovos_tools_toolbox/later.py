"""The tools with which a model asks for calls later. The service's schedule door answers them, keeps the limits, and decides on each call
anew when it is due.
"""
from typing import Any, Callable, Dict, List, Mapping, Optional

from ovos_bus_client import Message
from ovos_plugin_manager.templates.agent_tools import AgentTool
from ovos_tools_client import NoAnswer, ToolsError

from .models import Arguments, Output, arguments_model
from .service import Service
from .toolset import Tool

NO_DOOR = ("NoAnswer: nothing is scheduled, because the schedule door of ovos-tools does not run. Tell the user to run "
           "`ovos-tools enable schedule` and to restart the service.")
#: When a call is due: the keys that the door reads, beside the call.
WHEN: Dict[str, Any] = {
    "in_seconds": {"type": "number", "minimum": 0},
    "at": {"type": "string", "description": "Such as 2026-12-24T18:00:00+01:00."},
    "every_seconds": {"type": "number", "minimum": 60},
    "cron": {"type": "string", "description": "Five fields, local time: 30 7 * * MON-FRI."},
    "times": {"type": "integer", "minimum": 1},
}
CALL: Dict[str, Any] = {
    "name": {"type": "string", "description": "The tool."},
    "arguments": {"type": "object", "additionalProperties": True},
}


def tools(service: Service, find: Callable[[str], Optional[Tool]], request_of: Callable[[], Optional[Message]]) -> List[AgentTool]:
    """The tools. `find` is the tool of the service that a model knows by a name, and `request_of` the user's request."""

    def add(arguments: Mapping[str, Any]) -> Dict[str, Any]:
        asked = {key: value for key, value in arguments.items() if value is not None}
        name, args = asked.pop("name", None), asked.pop("arguments", {})
        tool = find(name) if isinstance(name, str) else None
        if tool is None:
            raise ToolsError(f"ValueError: there is no tool {name!r} that can be scheduled")
        if not isinstance(args, dict):
            raise ToolsError(f"ValueError: expected `arguments` of {name} to be an object")
        if unknown := sorted(set(asked) - set(WHEN)):
            raise ToolsError(f"ValueError: unknown argument {unknown[0]!r}; the arguments of {name} belong into `arguments`")
        return service.schedule(tool.name, tool.toolbox_id, args, asked, request_of())

    def show(_arguments: Mapping[str, Any]) -> Dict[str, Any]:
        return {"schedules": service.client.schedules(service.request(request_of()))}

    def cancel(arguments: Mapping[str, Any]) -> Dict[str, Any]:
        return service.client.cancel_schedule(str(arguments.get("schedule_id")), service.request(request_of()))

    def tool(name: str, description: str, properties: Dict[str, Any], required: List[str],
             run: Callable[[Mapping[str, Any]], Dict[str, Any]]) -> AgentTool:
        def call(arguments: Arguments) -> Output:
            try:
                return Output.model_validate(run(arguments.model_dump()))
            except NoAnswer:
                raise ToolsError(NO_DOOR) from None

        schema = {"type": "object", "properties": properties, "required": required}
        return AgentTool(name, description, arguments_model(name, schema), Output, call)

    return [
        tool("schedule_call",
             "Call a tool of this list later: once (in_seconds or at), again and again (every_seconds, from 60) or by cron. What moves a "
             "machine may have to be approved then.", {**CALL, **WHEN}, ["name"], add),
        tool("list_schedules", "List your schedules.", {}, [], show),
        tool("cancel_schedule", "Cancel a schedule.", {"schedule_id": {"type": "string"}}, ["schedule_id"], cancel),
    ]
