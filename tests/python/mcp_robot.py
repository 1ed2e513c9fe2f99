"""How far a robot's joints travel after an MCP client has cancelled: mcp_robot.py DOOR BUS URL TOKEN.

In both eras of the protocol and over both transports, with the robot toolbox and its simulated robot.
"""
import math
import sys
import time

import anyio

from mcp_peer import connected

DOOR, BUS, URL, TOKEN = sys.argv[1:5]
DEADLINE = 60
# Radians, from the last position that was read before the cancel.
TRAVEL = 0.2
# A read that takes longer says too little about where the joints are when it has arrived.
PROMPT = 0.05


async def motors(session):
    result = await session.call_tool("motor_status", {"subsystem": "right_arm"})
    assert not result.is_error, result
    read = result.structured_content["data"]["motors"]
    joints = {label: motor["position"] for label, motor in read.items()}
    return joints, any(motor["moving"] for motor in read.values())


def furthest(one, other):
    """In radians; every position is in degrees."""
    return math.radians(max(abs(one[joint] - other[joint]) for joint in one))


async def cancelled_while_it_moves(era, transport):
    async with connected("mcp", era, transport, DOOR, BUS, URL, TOKEN) as session:
        [page] = (await session.read_resource("ovos-tools://toolbox/robot")).contents
        assert "| walk | speed | 0.1 to 1.0 |" in page.text, page.text
        at_first, _ = await motors(session)
        async with anyio.create_task_group() as group:
            scope = anyio.CancelScope()

            async def dance():
                with scope:
                    result = await session.call_tool("dance", {"duration": 20})
                    raise AssertionError(f"an answer to a cancelled call: {result}")

            group.start_soon(dance)
            last = at_first
            with anyio.fail_after(DEADLINE):
                while True:
                    begun = time.monotonic()
                    joints, moving = await motors(session)
                    prompt = time.monotonic() - begun < PROMPT
                    if prompt and moving and furthest(last, joints) > 0.01 and furthest(at_first, joints) > TRAVEL:
                        break
                    last = joints
            scope.cancel()
        with anyio.fail_after(DEADLINE):
            while True:
                rest, moving = await motors(session)
                if not moving:
                    break
        travelled = furthest(joints, rest)
        await anyio.sleep(0.2)
        later, _ = await motors(session)
        assert furthest(rest, later) < 0.01, "it moves again"
        print(f"{session.protocol_version} over {transport}: {travelled:.3f} rad after the cancel", flush=True)
        assert travelled < TRAVEL, f"{travelled:.3f} rad"


async def main():
    for era in ("legacy", "modern"):
        for transport in ("stdio", "http"):
            await cancelled_while_it_moves(era, transport)
    print("the joints stop")


anyio.run(main)
