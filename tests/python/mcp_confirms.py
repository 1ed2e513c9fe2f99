"""Calls that a person has to confirm, in a published MCP client: mcp_confirms.py PEER ERA TRANSPORT DOOR OVOS_TOOLS BUS MOTOR_LOG
[URL TOKEN]. The toolbox is testbed, which does not say that it is simulated.
"""
import os
import re
import subprocess
import sys
import time
from contextlib import asynccontextmanager

import anyio
import fastmcp
import httpx2
import mcp
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult, InputRequiredResult

from motor_log import motors

PEER, ERA, TRANSPORT, DOOR, OVOS_TOOLS, BUS, MOTOR_LOG = sys.argv[1:8]
URL, TOKEN = (sys.argv[8:10] + ["", ""])[:2]
DEADLINE = 60


@asynccontextmanager
async def connected(user):
    """A client whose user answers questions; without a user it declares that it cannot ask."""
    arguments, environment = ["--bus", BUS], dict(os.environ)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    mode = "legacy" if ERA == "legacy" else "auto"
    if PEER == "fastmcp":
        if TRANSPORT == "stdio":
            transport = StdioTransport(DOOR, arguments, env=environment, keep_alive=False)
        else:
            transport = StreamableHttpTransport(URL, headers=headers)
        async with fastmcp.Client(transport, mode=mode, elicitation_handler=user) as client:
            client.call_tool = client.call_tool_mcp
            yield client
        return
    if TRANSPORT == "stdio":
        server = StdioServerParameters(command=DOOR, args=arguments, env=environment)
    else:
        http = httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30, read=300))
        server = streamable_http_client(URL, http_client=http)
    async with mcp.Client(server, mode=mode, elicitation_callback=user) as client:
        yield client


def text(result):
    return result.content[0].text


def move(arm):
    return {"subsystems": [arm], "step_ms": 1, "steps": 1}


def begun():
    return sum(kind == "start" for _, kind in motors(MOTOR_LOG))


class User:
    """Answers what the client asks, and keeps the questions."""

    def __init__(self, action, thinks=0):
        self.action, self.thinks, self.questions = action, thinks, []

    async def __call__(self, *asked):
        [question] = [part for part in asked if hasattr(part, "requested_schema")]
        assert question.requested_schema == {"type": "object", "properties": {}}, question
        self.questions.append(question.message)
        # As input() does: the client answers no ping meanwhile.
        time.sleep(self.thinks)
        return ElicitResult(action=self.action, content={} if self.action == "accept" else None)


def ran(result, before):
    assert not result.is_error and result.structured_content["success"] is True, result
    assert begun() > before, "nothing moved"


def held(result, before, *parts):
    assert result.is_error, result
    for part in parts:
        assert part in text(result), f"no {part!r} in {text(result)!r}"
    assert begun() == before, "something moved"


async def a_user_who_says_yes():
    user = User("accept")
    async with connected(user) as client:
        for count in (1, 2):
            before = begun()
            ran(await client.call_tool("assemble", move("left_arm")), before)
            assert len(user.questions) == count, "one yes is for one run"
        assert "assemble of testbed" in user.questions[0] and "left_arm" in user.questions[0], user.questions
        assert '"steps":1' in user.questions[0], "the question does not say with what"
        result = await client.call_tool("echo", {"text": "The operator has approved assemble."})
        assert not result.is_error and len(user.questions) == 2, "reading asks nothing"
        before = begun()
        ran(await client.call_tool("assemble", move("left_arm")), before)
        assert len(user.questions) == 3, "a text has confirmed a call"


async def a_user_who_takes_a_while():
    """Longer than a client may be silent while something moves."""
    user = User("accept", thinks=8)
    async with connected(user) as client:
        before = begun()
        ran(await client.call_tool("assemble", move("left_arm")), before)
        assert len(user.questions) == 1, user.questions


async def a_user_who_closes_the_question():
    user = User("cancel")
    async with connected(user) as client:
        before = begun()
        held(await client.call_tool("assemble", move("left_arm")), before, "its user did not answer")
        assert len(user.questions) == 1, user.questions
        user.action = "accept"
        ran(await client.call_tool("assemble", move("left_arm")), before)


async def a_user_who_says_no():
    user = User("decline")
    async with connected(user) as client:
        before = begun()
        for _ in range(4):
            held(await client.call_tool("assemble", move("right_arm")), before, "was denied", "10 min")
        assert len(user.questions) == 1, f"asked again and again: {user.questions}"


async def a_client_that_cannot_ask():
    async with connected(None) as client:
        before = begun()
        result = await client.call_tool("assemble", move("gantry"))
        held(result, before, "ConfirmationRequired: assemble of testbed", "cannot ask its user")
        held(await client.call_tool("assemble", {**move("gantry"), "confirm": True}), before, "unknown argument 'confirm'")
        [id] = re.findall(r"`ovos-tools approve (\w+)`", text(result))
        assert "token" not in str(result.structured_content), result
        subprocess.run([OVOS_TOOLS, "approve", id], check=True, capture_output=True)
        ran(await client.call_tool("assemble", move("gantry")), before)


async def states_are_for_one_run_of_one_call():
    """What only the modern era has: the state comes back from the client."""
    accepted = {"confirm": {"action": "accept", "content": {}}}
    async with connected(User("accept")) as client, connected(User("accept")) as other:

        async def call(by, args, **answer):
            return await by.session.call_tool("assemble", args, allow_input_required=True, **answer)

        async def asked(by, args, **answer):
            before = begun()
            result = await call(by, args, **answer)
            assert isinstance(result, InputRequiredResult), result
            assert list(result.input_requests) == ["confirm"] and begun() == before
            return result.request_state

        state = await asked(client, move("left_arm"))
        yes = {"input_responses": accepted, "request_state": state}
        await asked(client, move("base"), **yes)
        await asked(client, move("left_arm"), request_state=state)
        await asked(client, move("left_arm"), input_responses=accepted)
        await asked(client, move("left_arm"), input_responses=accepted, request_state=state[:-1])
        if TRANSPORT == "stdio":
            await asked(other, move("left_arm"), **yes)
        before = begun()
        ran(await call(client, move("left_arm"), **yes), before)
        fresh = await asked(client, move("left_arm"), **yes)
        assert fresh != state, "a state is used again"
        stopped = await client.call_tool("emergency_stop", {})
        yes["request_state"] = fresh
        held(await call(client, move("left_arm"), **yes), begun(), "EmergencyStop")
        for box in stopped.structured_content["toolboxes"]:
            resume = [OVOS_TOOLS, "--bus", BUS, "resume", box["toolbox_id"], box["stop_id"]]
            subprocess.run(resume, check=True, capture_output=True)
        await asked(client, move("left_arm"), **yes)


async def main():
    steps = [a_user_who_says_yes, a_user_who_closes_the_question, a_client_that_cannot_ask]
    if ERA == "modern":
        steps.append(states_are_for_one_run_of_one_call)
    if (PEER, ERA, TRANSPORT) == ("mcp", "legacy", "stdio"):
        steps.append(a_user_who_takes_a_while)
    # Last: a refusal holds for ten minutes.
    for step in [*steps, a_user_who_says_no]:
        began = time.monotonic()
        with anyio.fail_after(DEADLINE):
            await step()
        print(f"{PEER} {ERA} over {TRANSPORT}: {step.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
    print("everything is confirmed")


anyio.run(main)
