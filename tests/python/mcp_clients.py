"""A published MCP client, driven against the door: mcp_clients.py PEER ERA TRANSPORT DOOR OVOS_TOOLS BUS MOTOR_LOG [URL TOKEN].

PEER is `mcp` or `fastmcp`, ERA `legacy` (up to 2025-11-25) or `modern` (2026-07-28). The toolbox is testbed, whose motor
commands are lines of MOTOR_LOG with the monotonic clock. Where the service has to be restarted it says so.
"""
import base64
import json
import re
import subprocess
import sys
import time

import anyio
from mcp.client.subscriptions import listen
from mcp.shared.exceptions import MCPError
from mcp_types import ToolListChangedNotification

from mcp_peer import connected
from motor_log import moves, steps_since

PEER, ERA, TRANSPORT, DOOR, OVOS_TOOLS, BUS, MOTOR_LOG = sys.argv[1:8]
URL, TOKEN = (sys.argv[8:10] + ["", ""])[:2]
DEADLINE = 60
LONG = {"subsystems": ["left_arm"], "step_ms": 2, "steps": 100_000, "timeout_ms": 300_000}
# Far more than it takes; the promise is measured and printed, and a machine full of tests may stand still for a second.
REST = 1.5
# Hundreds of steps of LONG.
STILL = 0.5

heard_changes = 0
# When the last stop was sent: nothing moves from REST after it until the next call.
stopped = None


async def on_message(message):
    global heard_changes
    if isinstance(message, ToolListChangedNotification):
        heard_changes += 1


async def until(what, found):
    with anyio.fail_after(DEADLINE):
        while not (value := found()):
            await anyio.sleep(0.01)
    assert value, what
    return value


async def moving():
    """Waits for a step that is newer than this call; nothing has moved before."""
    global stopped
    still()
    stopped = None
    begun = time.monotonic()
    await until("a step", lambda: steps_since(MOTOR_LOG, begun))


async def at_rest(since, what):
    """Nothing moves for a while, and nothing moved later than REST after `since`. Says how long it took."""
    global stopped
    stopped = since
    await until("rest", lambda: time.monotonic() - max(moves(MOTOR_LOG)) > STILL)
    still()
    print(f"{what}: at rest after {max(max(moves(MOTOR_LOG)) - since, 0) * 1000:.0f} ms")


def still():
    """What was stopped last does not move again."""
    took = max(moves(MOTOR_LOG)) - stopped if stopped else 0
    assert took < REST, f"it moved until {took:.3f} s after it was stopped"


async def moved(session):
    """A short call that moves something."""
    global stopped
    still()
    stopped = None
    return await session.call_tool("assemble", {"subsystems": ["left_arm"], "step_ms": 1, "steps": 1})


def text(result):
    assert result.content and result.content[0].type == "text", result
    return result.content[0].text


def failed(result, *parts):
    assert result.is_error, result
    for part in parts:
        assert part in text(result), f"no {part!r} in {text(result)!r}"
    return result


async def refused(code, request):
    try:
        answer = await request
    except MCPError as error:
        assert error.code == code, error
    else:
        raise AssertionError(f"an answer instead of error {code}: {answer}")


async def lists(session):
    tools = {tool.name: tool for tool in (await session.list_tools()).tools}
    for name in tools:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name), name
    assert {"emergency_stop", "stop_moving", "add", "assemble", "testbed__dup", "testbed_dup__dup"} <= set(tools), tools
    assert "reset_stop" not in tools, "a tool that lifts a stop"
    assert all(tool.output_schema is None for tool in tools.values())
    hints = {name: tools[name].annotations for name in ("add", "assemble", "set_mark", "brake", "emergency_stop")}
    assert hints["add"].read_only_hint and hints["add"].open_world_hint is False, hints["add"]
    for name in ("assemble", "set_mark"):
        assert hints[name].destructive_hint and not hints[name].idempotent_hint, hints[name]
    assert "stop" not in tools, "the emergency stop of a toolbox stands beside the door's own"
    for name in ("brake", "emergency_stop"):
        assert hints[name].destructive_hint is False and hints[name].idempotent_hint, hints[name]
    schema = tools["add"].input_schema
    assert schema["required"] == ["a", "b"] and "title" not in schema, schema


async def answers(session):
    result = await session.call_tool("add", {"a": 20, "b": 22})
    assert not result.is_error and result.structured_content == {"result": 42}, result
    assert json.loads(text(result)) == {"result": 42}
    # What a host adds of its own reaches no tool.
    result = await session.call_tool("add", {"a": 1, "b": 2, "sessionId": "x", "toolCallId": "y"})
    assert result.structured_content == {"result": 3}, result
    result = await session.call_tool("testbed_dup__dup", {})
    assert result.structured_content["owner"] != "testbed", result
    failed(await session.call_tool("fail", {"message": "on purpose"}), "on purpose")
    failed(await session.call_tool("add", {"a": "x"}), "The arguments of `add`: a (integer, required), b (integer, required)")
    await refused(-32602, session.call_tool("no_such_tool", {}))
    await refused(-32602, session.call_tool("reset_stop", {}))
    await refused(-32601, session.list_prompts())


async def reads(session):
    uris = [str(resource.uri) for resource in (await session.list_resources()).resources]
    assert uris == ["ovos-tools://status", "ovos-tools://toolbox/testbed", "ovos-tools://toolbox/testbed_dup",
                    "skill://testbed/SKILL.md", "skill://testbed-dup/SKILL.md"], uris

    async def read(uri):
        [contents] = (await session.read_resource(uri)).contents
        return contents.text

    status = json.loads(await read("ovos-tools://status"))
    assert status["service"]["ready"] is True, status
    page = await read("ovos-tools://toolbox/testbed")
    assert "# testbed" in page and "| assemble | motion |" in page and "- drives: a simulator" in page, page
    [template] = (await session.list_resource_templates()).resource_templates
    assert template.uri_template == "ovos-tools://plan/{tool}{?arguments}", template
    plan = await read("ovos-tools://plan/assemble?arguments=%7B%22subsystems%22%3A%5B%22left_arm%22%5D%7D")
    assert "| 1 | calibrate:left_arm | left_arm |" in plan and "```mermaid" in plan, plan
    not_found = -32602 if ERA == "modern" else -32002
    for uri in ("ovos-tools://toolbox/none", "ovos-tools://plan/none", "file:///etc/passwd"):
        await refused(not_found, session.read_resource(uri))
    await refused(-32602, session.read_resource("ovos-tools://plan/assemble?arguments=%5B%5D"))


async def shows(session):
    """Content beside a result comes as blocks after it, and what breaks a rule as a text that names it."""
    picture, sound = (base64.b64encode(some).decode() for some in (b"\x89PNG\r\n", b"RIFF\x00\xff"))
    items = [
        {"type": "image", "mime_type": "image/png", "data": picture, "title": "The front"},
        {"type": "audio", "mime_type": "audio/wav", "data": sound},
        {"type": "resource", "mime_type": "application/x-map", "data": "AAE="},
        {"type": "resource", "mime_type": "text/html", "uri": "https://example.org/", "title": "A page"},
        {"type": "image", "mime_type": "image/png", "path": "../service/none.png"},
    ]
    result = await session.call_tool("show", {"text": "what the toolbox wrote", "items": items})
    assert not result.is_error and set(result.structured_content) == {"folder"}, result
    assert json.loads(text(result)) == result.structured_content, "the result stays apart from its content"
    own, caption, image, audio, embedded, link, left_out = result.content[1:]
    assert (own.type, own.text) == ("text", "what the toolbox wrote"), own
    assert (caption.type, caption.text) == ("text", "The front"), caption
    assert (image.type, image.mime_type, image.data) == ("image", "image/png", picture), image
    assert (audio.type, audio.mime_type, audio.data) == ("audio", "audio/wav", sound), audio
    assert (embedded.type, embedded.resource.mime_type, embedded.resource.blob) == ("resource", "application/x-map", "AAE="), embedded
    assert (link.type, str(link.uri), link.title) == ("resource_link", "https://example.org/", "A page"), link
    assert left_out.type == "text" and "not the name of a file in the toolbox's content folder" in left_out.text, left_out
    result = await session.call_tool("add", {"a": 1, "b": 2})
    assert len(result.content) == 1, result


async def progresses(session):
    heard, answered = [], None

    async def note(progress, total, message):
        heard.append((progress, total, message, time.monotonic()))

    # Where there is a ping, for longer than a client may be silent: this one answers it.
    steps = 24 if ERA == "legacy" else 6
    args = {"subsystems": ["left_arm", "right_arm"], "step_ms": 50, "steps": steps}
    result = await session.call_tool("assemble", args, progress_callback=note)
    answered = time.monotonic()
    assert result.structured_content["success"] is True, result
    await session.call_tool("ping", {})
    numbers = [progress for progress, *_ in heard]
    assert len(numbers) >= 4 and all(a < b for a, b in zip(numbers, numbers[1:])), heard
    assert {total for _, total, *_ in heard} == {4}, heard
    messages = [message for _, _, message, _ in heard]
    for wave, action in enumerate(["calibrate:left_arm", "move:left_arm", "join", "retract:left_arm"], 1):
        assert any(m.startswith(f"wave {wave} of 4") and action in m for m in messages), messages
    assert all(at <= answered for *_, at in heard), "progress after the answer"


async def cancels(session):
    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()

        async def call():
            with scope:
                result = await session.call_tool("assemble", LONG)
                raise AssertionError(f"an answer to a cancelled call: {result}")

        group.start_soon(call)
        await moving()
        since = time.monotonic()
        scope.cancel()
    await at_rest(since, "cancel")
    assert (await session.call_tool("ping", {})).structured_content == {"pong": True}


async def stops(session, tool, *parts):
    """Calls a stop while something moves; returns what it answered and what the motion did."""
    results = []
    async with anyio.create_task_group() as group:

        async def call():
            results.append(await session.call_tool("assemble", LONG))

        group.start_soon(call)
        await moving()
        since = time.monotonic()
        stopped = await session.call_tool(tool, {})
    failed(results[0])
    for part in parts:
        assert part in text(stopped), stopped
    assert not stopped.is_error, stopped
    await at_rest(since, tool)
    return stopped.structured_content


async def stops_of_both_kinds(session):
    said = await stops(session, "stop_moving", "Stopped: 1")
    assert (said["stopped"], said["running"]) == (1, []) and said["message"].startswith("Stopped: 1"), said
    assert not (await moved(session)).is_error, "stop_moving latched something"

    said = await stops(session, "emergency_stop", "until an operator lifts the stop")
    assert said["confirmed"] and {box["toolbox_id"] for box in said["toolboxes"]} == {"testbed", "testbed_dup"}, said
    failed(await session.call_tool("assemble", LONG), "EmergencyStop", "an operator has to lift the stop")
    for box in said["toolboxes"]:
        subprocess.run([OVOS_TOOLS, "--bus", BUS, "resume", box["toolbox_id"], box["stop_id"]], check=True, capture_output=True)
    result = await moved(session)
    assert not result.is_error, result


async def follows_the_list(session):
    """A toolbox gets new tools while a call of it runs, and the client hears of it."""

    async def changed():
        if ERA == "modern":
            async with listen(session, tools_list_changed=True) as changes:
                await session.call_tool("grow", {"tools": 1})
                async for _ in changes:
                    return
        before = heard_changes
        await session.call_tool("grow", {"tools": 1})
        await until("a word about the list", lambda: heard_changes > before)

    slow = []
    async with anyio.create_task_group() as group:

        async def call():
            slow.append(await session.call_tool("slow", {"seconds": 2}))

        group.start_soon(call)
        with anyio.fail_after(DEADLINE):
            await changed()
        subprocess.run([OVOS_TOOLS, "--bus", BUS, "reload"], check=True, capture_output=True)
        assert not slow, "the call ended before the reload"
    assert slow[0].structured_content == {"seconds": 2}, slow
    names = {tool.name for tool in (await session.list_tools()).tools}
    assert "grown_1" in names, names
    assert (await session.call_tool("grown_1", {})).structured_content == {"number": 1}


async def survives_a_restart(session):
    """The service is killed during a call: an error within seconds, and the next call works."""
    async with anyio.create_task_group() as group:

        async def call():
            begun = time.monotonic()
            result = await session.call_tool("slow", {"seconds": 120})
            failed(result)
            print(f"the restart: an answer after {time.monotonic() - begun:.1f} s: {text(result)}")
            assert time.monotonic() - begun < 30

        group.start_soon(call)
        await anyio.sleep(0.3)
        print("RESTART THE SERVICE", flush=True)
    with anyio.fail_after(DEADLINE):
        while (result := await session.call_tool("add", {"a": 1, "b": 2})).is_error:
            await anyio.sleep(0.1)
    assert result.structured_content == {"result": 3}, result


async def main():
    async with connected(PEER, ERA, TRANSPORT, DOOR, BUS, URL, TOKEN, on_message) as session:
        version = session.protocol_version
        assert (version >= "2026-07-28") == (ERA == "modern"), version
        for step in (lists, answers, reads, shows, progresses, cancels, stops_of_both_kinds, follows_the_list, survives_a_restart):
            with anyio.fail_after(2 * DEADLINE):
                await step(session)
            print(f"{PEER} {version} over {TRANSPORT}: {step.__name__}", flush=True)
    print("everything is as promised")


anyio.run(main)
