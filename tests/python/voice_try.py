"""Plays Hume's part on this machine: tells the voice door to call tools that are typed here, as `NAME {"argument": ...}`."""

import asyncio
import json
import sys

from hume.empathic_voice.types import ChatMetadata, ToolCallMessage
from voice_peer import Line
from websockets.asyncio.server import serve

PORT = 8790


def look(message):
    if message["type"] == "session_settings":
        print("tools:", ", ".join(tool["name"] for tool in message["tools"]))
    else:
        print(json.dumps(message, indent=2))


async def talk(socket):
    line = Line(socket, look)
    await line.say(ChatMetadata(chat_id="demo", chat_group_id="demo").model_dump_json(exclude_none=True))
    number = 0

    async def hear():
        async for text in socket:
            look(json.loads(text))

    hearing = asyncio.create_task(hear())
    while typed := await asyncio.to_thread(sys.stdin.readline):
        name, _, parameters = typed.strip().partition(" ")
        number += 1
        call = ToolCallMessage(
            name=name,
            parameters=parameters or "{}",
            tool_call_id=f"call_{number}",
            response_required=True,
            tool_type="function",
        )
        await line.say(call.model_dump_json(exclude_none=True))
    hearing.cancel()


async def main():
    async with serve(talk, "127.0.0.1", PORT) as server:
        print(f"ovos-tools voice hume --chat demo --url ws://127.0.0.1:{PORT}", flush=True)
        await server.serve_forever()


asyncio.run(main())
