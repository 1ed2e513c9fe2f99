"""A published MCP client of a door that shows `find_tools`: mcp_finds.py PEER ERA TRANSPORT DOOR OVOS_TOOLS BUS MOTOR_LOG [URL TOKEN].

Finding a tool, calling it through `call_tool` as a direct call, the stops, and the pages of toolboxes as skills.
"""
import hashlib
import json
import os
import sys

import anyio
from mcp.shared.exceptions import MCPError

from mcp_peer import connected

PEER, ERA, TRANSPORT, DOOR, OVOS_TOOLS, BUS, MOTOR_LOG = sys.argv[1:8]
URL, TOKEN = (sys.argv[8:10] + ["", ""])[:2]
PAGE = "skill://testbed/SKILL.md"


def seen(result):
    """What a model sees of a result."""
    return result.is_error, [block.text for block in result.content], result.structured_content


async def finds(session):
    tools = {tool.name: tool for tool in (await session.list_tools()).tools}
    assert list(tools) == ["emergency_stop", "stop_moving", "find_tools", "call_tool"], list(tools)
    assert tools["find_tools"].annotations.read_only_hint is True
    assert tools["call_tool"].annotations.destructive_hint is True
    found = await session.call_tool("find_tools", {"query": "adding two integers"})
    first = found.structured_content["tools"][0]
    assert (first["name"], first["toolbox"], first["effect"]) == ("add", "testbed", "read"), first
    assert set(first["arguments"]["properties"]) == {"a", "b"}, first
    nothing = (await session.call_tool("find_tools", {"query": "xyzzy"})).structured_content
    assert nothing["tools"] == [] and "testbed" in [one["toolbox"] for one in nothing["toolboxes"]], nothing
    page = (await session.call_tool("find_tools", {"guide": "testbed"})).structured_content["guide"]
    assert page.startswith('---\nname: "testbed"\n'), page
    wrong = await session.call_tool("find_tools", {})
    assert wrong.is_error and "expected `query`" in wrong.content[0].text, wrong
    print("find_tools: good")


async def calls(session):
    """Each call is answered as a direct one, right or wrong."""
    for name, arguments in [
        ("add", {"a": 1, "b": 2}),
        ("add", {"a": "3", "b": 4}),
        ("add", {"a": 1}),
        ("add", {"a": 1, "b": 2, "sessionId": "of a host"}),
        ("echo", {"text": "call_tool"}),
        ("assemble", {"subsystems": ["left_arm"], "step_ms": 1, "steps": 1}),
    ]:
        direct = seen(await session.call_tool(name, arguments))
        through = seen(await session.call_tool("call_tool", {"name": name, "arguments": arguments}))
        assert through == direct, (name, arguments, through, direct)
    for arguments, expected in [
        ({"name": "adds_up", "arguments": {}}, "there is no tool 'adds_up'"),
        ({"name": "call_tool", "arguments": {"name": "add"}}, "there is no tool 'call_tool'"),
        ({"arguments": {}}, "expected `name`"),
        ({"name": "add", "arguments": 5}, "to be an object"),
        ({"name": "reset_stop"}, "there is no tool 'reset_stop'"),
    ]:
        refused = await session.call_tool("call_tool", arguments)
        assert refused.is_error and expected in refused.content[0].text, (arguments, refused)
    print("call_tool: good")


async def stops(session):
    """What moves ends by a stop through `call_tool`, which is carried out when it arrives."""
    long = {"subsystems": ["left_arm"], "step_ms": 2, "steps": 100_000, "timeout_ms": 300_000}
    ended = []
    before = os.path.getsize(MOTOR_LOG)

    async def move():
        ended.append(await session.call_tool("call_tool", {"name": "assemble", "arguments": long}))

    async with anyio.create_task_group() as group:
        group.start_soon(move)
        with anyio.fail_after(30):
            while os.path.getsize(MOTOR_LOG) == before:
                await anyio.sleep(0.01)
            stopped = await session.call_tool("call_tool", {"name": "stop_moving"})
    assert not stopped.is_error, stopped
    assert ended[0].is_error and "ancel" in ended[0].content[0].text, ended
    print("stops: good")


async def reads(session):
    listed = {str(resource.uri): resource for resource in (await session.list_resources()).resources}
    assert PAGE in listed and listed[PAGE].name == "testbed" and listed[PAGE].mime_type == "text/markdown", listed
    text = (await session.read_resource(PAGE)).contents[0].text
    assert text.startswith('---\nname: "testbed"\n') and "- `add` (read): " in text, text
    try:
        await session.read_resource("skill://nowhere/SKILL.md")
        raise AssertionError("a page of nothing")
    except MCPError as error:
        assert "Unknown resource" in str(error), error
    print("pages: good")
    return text


async def skills(client, text):
    """The extension for skills, as a client that has it uses it."""
    listed = {str(skill.uri): skill for skill in await client.list_skills()}
    one = await client.get_skill(PAGE)
    for skill in (listed[PAGE], one):
        assert skill.frontmatter.name == "testbed", skill
        assert json.dumps(skill.frontmatter.description) in text, skill
        digest = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
        assert [(str(file.uri), file.digest) for file in skill.resources] == [(PAGE, digest)], skill
    print("skills: good")


async def main():
    async with connected(PEER, ERA, TRANSPORT, DOOR, BUS, URL, TOKEN) as session:
        await finds(session)
        await calls(session)
        await stops(session)
        text = await reads(session)
    if PEER == "fastmcp" and ERA == "modern" and TRANSPORT == "stdio":
        import fastmcp
        from fastmcp.client.transports import StdioTransport
        from fastmcp.skills.client import SkillsClientExtension

        via = StdioTransport(DOOR, ["--bus", BUS], env=dict(os.environ), keep_alive=False)
        async with fastmcp.Client(via, extensions=[SkillsClientExtension()]) as client:
            await skills(client, text)
    print("everything is found")


anyio.run(main)
