"""Drives the voice door as OpenAI's Realtime API does, with the types of OpenAI's own SDK in both directions.

Arguments: the door, the bus, the name of the variable for the key. Everything that the door says is read as the SDK's client event and must have no other keys.
"""

import asyncio
import json
import sys
from importlib.metadata import version

from openai.types.realtime import (
    ConversationItemCreateEvent,
    RealtimeConversationItemFunctionCall,
    RealtimeFunctionTool,
    RealtimeResponse,
    RealtimeResponseStatus,
    ResponseCreatedEvent,
    ResponseCreateEvent,
    ResponseDoneEvent,
    SessionUpdateEvent,
)
from pydantic import BaseModel
from voice_peer import KEY, Service, door, refuses

TYPES = {
    "session.update": SessionUpdateEvent,
    "conversation.item.create": ConversationItemCreateEvent,
    "response.create": ResponseCreateEvent,
}


def closed(value, path=""):
    """The SDK's types take every key; a service does not."""
    if isinstance(value, BaseModel):
        assert not value.model_extra, f"{path} has no {list(value.model_extra)}"
        for name, _ in type(value).model_fields.items():
            closed(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            closed(item, f"{path}[]")


def check(message):
    read = TYPES[message["type"]].model_validate(message)
    closed(read, message["type"])
    for tool in getattr(getattr(read, "session", None), "tools", None) or []:
        assert isinstance(tool, RealtimeFunctionTool) and tool.name, tool


def done(number, status, *calls, reason=None):
    items = [
        RealtimeConversationItemFunctionCall(
            type="function_call", call_id=call_id, name=name, arguments=json.dumps(arguments), status="completed"
        )
        for call_id, name, arguments in calls
    ]
    details = RealtimeResponseStatus(type=status, reason=reason)
    response = RealtimeResponse(id=f"resp_{number}", status=status, status_details=details, output=items)
    event = ResponseDoneEvent(type="response.done", event_id=f"event_{number}", response=response)
    return event.model_dump_json(exclude_none=True)


async def speaks(line, number):
    """The door lets the voice speak, and it does: until then the door lets it speak about nothing else."""
    assert (await line.next())["type"] == "response.create"
    response = RealtimeResponse(id=f"resp_{number}", status="in_progress", output=[])
    created = ResponseCreatedEvent(type="response.created", event_id=f"event_c{number}", response=response)
    await line.say(created.model_dump_json(exclude_none=True))
    await line.say(done(number, "completed"))


def output(message):
    return json.loads(message["item"]["output"])


async def main(program, bus, variable):
    refuses(
        check,
        {"type": "response.cancel"},
        {"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": "a"}},
        {"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": "a", "output": "", "x": 1}},
        {"type": "session.update", "session": {"tools": []}},
    )
    service = Service(check)
    async with service.listening() as url:
        async with door(program, bus, variable, "openai", "--url", url, "--call", "rtc_1"):
            line = await service.line()
            assert line.path == "/v1/realtime?call_id=rtc_1", line.path
            assert line.headers["Authorization"] == f"Bearer {KEY}"
            update = await line.next()
            names = [tool["name"] for tool in update["session"]["tools"]]
            assert names[:2] == ["emergency_stop", "stop_moving"] and "assemble" in names, names

            # What is cut short does not run: the next answer is to the call after it.
            await line.say(done(1, "cancelled", ("call_1", "add", {"a": 1, "b": 1}), reason="turn_detected"))
            await line.say(done(2, "completed", ("call_2", "add", {"a": 1, "b": 2}), ("call_3", "fly", {})))
            answers = [await line.next(), await line.next()]
            outputs = {answer["item"]["call_id"]: output(answer) for answer in answers}
            assert outputs["call_2"]["data"] == {"result": 3}, outputs
            assert outputs["call_3"]["success"] is False, outputs
            await speaks(line, 10)

            # A long call is announced, and its end told.
            arguments = {"subsystems": ["base"], "steps": 12, "step_ms": 60}
            await line.say(done(3, "completed", ("call_4", "assemble", arguments)))
            answer = await line.next()
            assert output(answer)["data"] == {"state": "under_way"}, answer
            await speaks(line, 11)
            told = await line.next()
            text = told["item"]["content"][0]["text"]
            assert told["item"]["role"] == "system" and "assemble is done" in text, told
            assert (await line.next())["type"] == "response.create"
            await line.socket.close()
        print(f"joined by call_id: {line.said}")
    print(f"openai {version('openai')}: everything is as promised")


asyncio.run(main(*sys.argv[1:]))
