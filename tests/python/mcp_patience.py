"""Clients that give up after 3, 5 and 10 s, while a machine moves for longer: mcp_patience.py PEER ERA TRANSPORT DOOR BUS MOTOR_LOG
[URL TOKEN]. The door answers within 2 s, and its lease is 4 s. Of a framework for agents (ERA `framework`) it is asked what its models
read."""
import asyncio
import json
import re
import sys
import time

import anyio

from mcp_frameworks import open_session
from mcp_peer import connected
from motor_log import moves

PEER, ERA, TRANSPORT, DOOR, BUS, MOTOR_LOG = sys.argv[1:7]
URL, TOKEN = (sys.argv[7:9] + ["", ""])[:2]
PARTS = {3: "left_arm", 5: "right_arm", 10: "gantry"}
LEASE = 4
# Far more than it takes; the promise is measured and printed, and a machine full of tests may stand still for a second.
REST = 1.5
# Hundreds of steps; a machine full of tests may stand still for a second.
STILL = 1.5


def motion(part, seconds):
    """In four waves, each of so many steps."""
    return {"subsystems": [part], "step_ms": 2, "steps": seconds * 125, "timeout_ms": 300_000}


async def handle(session, part, seconds, patience):
    """Begins a motion that takes longer than the client waits; the id of its call."""
    result = await session.call_tool("assemble", motion(part, seconds), read_timeout_seconds=patience)
    assert not result.is_error, result
    text = result.content[0].text
    assert "still runs" in text and "NOT done" in text, text
    if not (data := result.structured_content):
        return re.search(r"Its call_id is (\S+)\. ", text)[1]
    assert data["call_id"] in text and data["state"] == "running" and "NOT done" in data["message"], result
    return data["call_id"]


def still_runs(result):
    return result.structured_content.get("state") == "running" or "still runs" in result.content[0].text


async def at_rest(part, since, bound, what):
    while (last := max(moves(MOTOR_LOG, part))) > time.monotonic() - STILL:
        assert time.monotonic() < since + bound + STILL, f"{what}: {part} still moves"
        await anyio.sleep(0.02)
    print(f"{what}: {part} at rest after {max(last - since, 0) * 1000:.0f} ms", flush=True)
    return last - since


async def is_waited_for(session, patience):
    """The motion goes on, and its end can be asked for."""
    part = PARTS[patience]
    call_id = await handle(session, part, 6, patience)
    waits, begun = 0, time.monotonic()
    while True:
        result = await session.call_tool("wait_call", {"call_id": call_id}, read_timeout_seconds=patience)
        waits += 1
        if not still_runs(result):
            break
        assert " of 4: " in result.content[0].text, result
    data = result.structured_content or json.loads(result.content[0].text)
    assert not result.is_error and data["success"] is True, result
    assert waits >= 2 and 3 < time.monotonic() - begun < 30, waits
    # It can be asked for once more.
    again = await session.call_tool("wait_call", {"call_id": call_id}, read_timeout_seconds=patience)
    assert (again.structured_content, again.content[0].text) == (result.structured_content, result.content[0].text), again


async def is_cancelled(session, patience):
    part = PARTS[patience]
    call_id = await handle(session, part, 60, patience)
    listed = await session.call_tool("list_calls", {}, read_timeout_seconds=patience)
    data = listed.structured_content or json.loads(listed.content[0].text)
    mine = [call for call in data["calls"] if call["call_id"] == call_id]
    assert mine and mine[0]["tool"] == "assemble" and mine[0]["state"] == "running", listed
    begun = time.monotonic()
    result = await session.call_tool("cancel_call", {"call_id": call_id}, read_timeout_seconds=patience)
    assert result.is_error and "its client cancelled it" in json.dumps([block.text for block in result.content]), result
    await at_rest(part, begun, REST, "cancelled")


async def is_left(session, patience):
    """A client that never asks again: the motion ends with the lease, and not before."""
    part = PARTS[patience]
    call_id = await handle(session, part, 60, patience)
    begun = time.monotonic()
    took = await at_rest(part, begun, LEASE + REST, "left")
    assert took > LEASE - 1, took
    result = await session.call_tool("wait_call", {"call_id": call_id}, read_timeout_seconds=patience)
    texts = json.dumps([block.text for block in result.content])
    assert result.is_error and "its client did not ask for it again" in texts, result


async def gives_up(session, patience):
    """A request that was not answered yet and is given up ends its motion, as ever."""
    part = PARTS[patience]
    call_id = await handle(session, part, 60, patience)
    begun = time.monotonic()
    try:
        await session.call_tool("wait_call", {"call_id": call_id}, read_timeout_seconds=0.5)
        raise AssertionError("it was answered in half a second")
    except AssertionError:
        raise
    except Exception as error:
        assert "imed out" in str(error) or "imeout" in str(error), error
    await at_rest(part, begun, 0.5 + REST, "given up")


def session_of(patience):
    if ERA == "framework":
        return open_session(PEER, TRANSPORT, DOOR, BUS, URL, TOKEN, patience)
    return connected(PEER, ERA, TRANSPORT, DOOR, BUS, URL, TOKEN)


async def client(patience):
    # A framework gives up after the time that it was made with.
    steps = (is_waited_for, is_cancelled, is_left) if ERA == "framework" else (is_waited_for, is_cancelled, is_left, gives_up)
    async with session_of(patience) as session:
        unknown = await session.call_tool("wait_call", {"call_id": "mcp-none"})
        assert unknown.is_error and "list_calls" in unknown.content[0].text, unknown
        for step in steps:
            await step(session, patience)
            print(f"{patience} s: {step.__name__}", flush=True)


async def main():
    # Some frameworks leave scopes of anyio open, in which a group of anyio's cannot end.
    await asyncio.gather(*map(client, PARTS))
    print("nothing stopped half way")


asyncio.run(main())
