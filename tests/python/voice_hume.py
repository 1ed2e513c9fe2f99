"""Drives the voice door as Hume's service does, with the types of Hume's own SDK in both directions.

Arguments: the door, the bus, the name of the variable for the key. Everything that the door says is read with the class of its type and must have no other keys.
"""

import asyncio
import json
import sys
from importlib.metadata import version

from hume.empathic_voice.types import (
    AssistantInput,
    AudioOutput,
    ChatMetadata,
    SessionSettings,
    ToolCallMessage,
    ToolErrorMessage,
    ToolResponseMessage,
    UserInterruption,
    WebSocketError,
)
from voice_peer import KEY, Service, door, refuses

# What the control plane accepts of what the door says; the union has no discriminator.
TYPES = {
    "session_settings": SessionSettings,
    "assistant_input": AssistantInput,
    "tool_response": ToolResponseMessage,
    "tool_error": ToolErrorMessage,
}


def check(message):
    read = TYPES[message["type"]].model_validate(message, strict=False)
    assert not read.model_extra, f"{message['type']} has no {list(read.model_extra)}"
    for tool in getattr(read, "tools", None) or []:
        assert not tool.model_extra and tool.type == "function", tool
        assert json.loads(tool.parameters)["type"] == "object", tool


def says(message):
    """A message of the service, made of the SDK's own type."""
    return message.model_dump_json(exclude_none=True)


def call(number, name, parameters, **more):
    fields = {"response_required": True, "tool_type": "function", **more}
    text = parameters if isinstance(parameters, str) else json.dumps(parameters)
    return says(ToolCallMessage(name=name, parameters=text, tool_call_id=f"call_{number}", **fields))


def answer_to(number):
    return lambda message: message.get("tool_call_id") == f"call_{number}"


async def talks(line):
    """What a conversation is made of."""
    await line.say(call(1, "add", {"a": 2, "b": 3}))
    answer = await line.until(answer_to(1))
    assert answer["type"] == "tool_response", answer
    assert json.loads(answer["content"]) == {"success": True, "message": "add is done", "data": {"result": 5}}, answer

    # Audio of the voice, and the same call again: neither is answered.
    await line.say(says(AudioOutput(data="UklG" * 250_000, id="a", index=0)))
    await line.say(call(1, "add", {"a": 2, "b": 3}))
    await line.say(call(2, "add", {"a": 1, "b": 1}, response_required=False))
    await line.say(call(3, "web_search", {"query": "x"}, tool_type="builtin"))
    await line.say(says(WebSocketError(code="E0101", slug="odd", message="something")))
    await line.say(says(UserInterruption(time=1)))
    for number, name, parameters in [(4, "add", "{"), (5, "fly", {}), (6, "fail", {"message": "broken"})]:
        await line.say(call(number, name, parameters))
        answer = await line.next()
        assert answer["type"] == "tool_error" and answer_to(number)(answer), answer
        assert answer["content"] and answer["error"], answer

    # A long call is announced, and its end told.
    await line.say(call(7, "assemble", {"subsystems": ["base"], "steps": 12, "step_ms": 60}))
    answer = await line.until(answer_to(7))
    assert json.loads(answer["content"])["data"] == {"state": "under_way"}, answer
    told = await line.until(lambda message: message["type"] == "assistant_input")
    assert told["text"].startswith("assemble is done"), told

    # Both stops.
    await line.say(call(8, "stop_moving", {}))
    answer = await line.until(answer_to(8))
    assert json.loads(answer["content"])["success"] is True, answer


async def main(program, bus, variable):
    refuses(
        check,
        {"type": "audio_input", "data": ""},
        {"type": "tool_response", "tool_call_id": "a"},
        {"type": "tool_error", "tool_call_id": "a", "error": "x", "level": "error"},
        {"type": "tool_response", "tool_call_id": "a", "content": "", "more": 1},
        {"type": "session_settings", "tools": [{"type": "function", "name": "a", "parameters": {}}]},
    )
    service = Service(check)
    async with service.listening() as url:
        async with door(program, bus, variable, "hume", "--url", url, "--chat", "chat-1"):
            line = await service.line()
            assert line.path == "/v0/evi/chat/chat-1/connect", line.path
            assert line.headers["X-Hume-Api-Key"] == KEY
            await line.say(says(ChatMetadata(chat_id="chat-1", chat_group_id="group-1")))
            settings = await line.next()
            names = [tool["name"] for tool in settings["tools"]]
            assert names[:2] == ["emergency_stop", "stop_moving"] and "assemble" in names, names
            await talks(line)
            await line.socket.close()
        print(f"joined through the control plane: {line.said}")

        async with door(program, bus, variable, "hume", "--url", url):
            line = await service.line()
            assert line.path == "/v0/evi/chat?allow_connection=true", line.path
            await line.say(says(ChatMetadata(chat_id="chat-2", chat_group_id="group-2")))
            await talks(line)
            line.socket.transport.abort()
            line = await service.line()
            assert line.path == "/v0/evi/chat?allow_connection=true&resumed_chat_group_id=group-2", line.path
            await line.say(says(ChatMetadata(chat_id="chat-3", chat_group_id="group-2")))
            # The same ids, in another chat.
            await talks(line)
            await line.socket.close()
        print(f"a chat of its own, resumed: {line.said}")
    print(f"hume {version('hume')}: everything is as promised")


asyncio.run(main(*sys.argv[1:]))
