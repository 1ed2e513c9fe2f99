"""What the toolbox mirrors of a service with testbed and testbed_dup, whose machine does not say that it is simulated:
agents_mirror.py URL OVOS_TOOLS.
"""
import json
import os
import re
import subprocess
import sys
import time

from ovos_bus_client import Message, MessageBusClient
from ovos_plugin_manager.persona import find_toolbox_plugins

from ovos_tools_toolbox.prompt import signature
from ovos_tools_toolbox.stops import THINKING, Stops
from ovos_tools_toolbox.toolset import Toolset
from wire import Wire

URL, OVOS_TOOLS = sys.argv[1:3]
DEADLINE = 60
OWN = {"emergency_stop", "stop_moving"}

ToolBox = find_toolbox_plugins()["ovos-tools-toolbox"]
wire = Wire(URL)


def until(what, found):
    end = time.monotonic() + DEADLINE
    while not found():
        assert time.monotonic() < end, f"no {what}"
        time.sleep(0.02)


# -- which tools --

FILTERS = [
    # config, names that are there, names that are not; both stops always are
    ({}, {"add", "assemble", "brake", "testbed__dup", "testbed_dup__dup"}, {"reset_stop", "testbed__reset_stop", "dup"}),
    ({"toolboxes": {"allow": ["testbed_dup"]}}, {"testbed_dup__dup"}, {"add", "testbed__dup"}),
    ({"toolboxes": {"deny": ["*_dup"]}}, {"add", "testbed__dup"}, {"testbed_dup__dup"}),
    ({"effects": {"allow": ["read"]}}, {"add"}, {"assemble", "brake", "stop"}),
    ({"effects": {"deny": ["motion"]}}, {"add", "brake"}, {"assemble"}),
    ({"effects": {"allow": ["resume"]}}, set(), {"add", "reset_stop"}),
    ({"tools": {"allow": ["a*"], "deny": ["assemble"]}}, {"add", "ask"}, {"assemble", "echo"}),
    ({"tools": {"deny": ["*"]}}, set(), {"add"}),
    ({"tools": {"allow": []}}, set(), {"add"}),
    # With `__` a pattern names tools of the toolboxes that it names.
    ({"tools": {"allow": ["testbed__*"]}}, {"add", "testbed__dup"}, {"testbed_dup__dup"}),
    ({"tools": {"deny": ["*_dup__*", "testbed__ad*"]}}, {"assemble", "testbed__dup"}, {"add", "testbed_dup__dup"}),
    # A pattern is no regular expression.
    ({"tools": {"allow": ["a.d", "[a]dd"]}}, set(), {"add"}),
    # The toolbox has stops of its own, so that of one machine is not shown beside them.
    ({"effects": {"allow": ["stop"]}}, set(), {"stop", "add"}),
    ({"audience": ["model", "person"]}, {"add"}, {"stop"}),
    ({"audience": ["person"]}, set(), {"add"}),
]
for config, there, missing in FILTERS:
    toolbox = ToolBox(config=config, bus=None)
    names = set(toolbox.tools)
    assert there | OWN <= names and not missing & names, (config, sorted(names))
    assert {tool["function"]["name"] for tool in toolbox.openai_tools} == names
    toolbox.close()

WRONG = [
    ({"tools": ["add"]}, "`tools` is ['add']; expected an object"),
    ({"tools": {"only": ["add"]}}, "`tools` is {'only': ['add']}; expected an object"),
    ({"toolboxes": {"allow": "robot"}}, "`toolboxes.allow` is 'robot'; expected a list of strings"),
    ({"effects": {"deny": ["movement"]}}, "`effects.deny` names 'movement'; expected some of read, write"),
    ({"timeout_ms": 1.5}, "`timeout_ms` is 1.5; expected a whole number"),
    ({"timeout_ms": 0}, "`timeout_ms` is 0; expected a whole number"),
    ({"audience": "model"}, "`audience` is 'model'; expected a list of some of model, person"),
    ({"audience": ["all"]}, "`audience` is ['all']; expected a list of some of model, person"),
    ({"ask_by_voice": "no"}, "`ask_by_voice` is 'no'; expected true or false"),
]
for config, told in WRONG:
    try:
        ToolBox(config=config)
        raise AssertionError(f"{config} was accepted")
    except ValueError as error:
        assert told in str(error), (config, error)

toolbox = ToolBox(config={}, bus=None)
exported = {tool["function"]["name"]: tool for tool in wire.ask("ovos.tools.export", {"format": "openai"})["tools"]}
mirrored = {tool["function"]["name"]: tool for tool in toolbox.openai_tools if tool["function"]["name"] not in OWN}
stops = {tool["name"] for tool in wire.ask("ovos.tools.list", {"effect": "stop", "detail": True})["tools"]}
assert stops and mirrored == {name: tool for name, tool in exported.items() if name not in stops}, "models see other schemas"

# A prompt has the arguments as one line each.
SIGNATURES = [
    ({}, "{}"),
    ({"properties": {"a": {"type": "number"}}, "required": ["a"]}, "{a: number}"),
    ({"properties": {"arm": {"enum": ["left", "right"], "default": "left", "description": "which arm"}}},
     "{arm?: 'left'|'right' = 'left' (which arm)}"),
    ({"properties": {"n": {"type": ["integer", "null"], "minimum": 1, "maximum": 5, "default": None}}},
     "{n?: integer|null >= 1 <= 5}"),
    ({"properties": {"at": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}}}, "{at?: {x: number}}"),
    ({"properties": {"names": {"type": "array", "items": {"type": "string"}}, "free": {}}}, "{names?: [string], free?: any}"),
    ({"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "b": True}}, "{a?: string|null, b?: any}"),
]
for schema, line in SIGNATURES:
    assert signature(schema) == line, (schema, signature(schema))
for entry in toolbox.tool_json_list:
    assert set(entry) == {"name", "description", "argument_schema"}, entry
    assert all(f"{name}" in entry["argument_schema"] for name in
               toolbox.get_tool(entry["name"]).argument_schema.model_json_schema().get("properties", {})), entry

# -- calls --

CALLS = [
    # tool, arguments, what the model is told
    ("add", {"a": 1, "b": 2}, '{"result": 3}'),
    # Names that mean something to a model of pydantic.
    ("add", {"a": "1", "b": 2, "self": 1, "model_config": {}, "schema_of_service": {}}, '{"result": 3}'),
    ("echo", {"text": "ä\u2028"}, '{"text": "ä\u2028"}'),
    ("testbed_dup__dup", {}, '{"owner": "testbed_dup"}'),
    ("add", {"a": "one", "b": 2}, "ValueError: Tool input validation failed for 'add' in ToolBox 'testbed': a: "),
    ("add", {}, "ValueError: Tool input validation failed for 'add' in ToolBox 'testbed': "),
    ("fail", {"message": "the reason"},
     "RuntimeError: Tool execution failed for 'fail' in ToolBox 'testbed': RuntimeError: the reason"),
    ("bad_output", {}, "RuntimeError: Tool output validation failed for 'bad_output' in ToolBox 'testbed'"),
    ("reset_stop", {}, "Unknown tool 'reset_stop'"),
    ("testbed__reset_stop", {}, "Unknown tool"),
    ("dup", {}, "Unknown tool 'dup'"),
]
for name, arguments, told in CALLS:
    try:
        said = str(toolbox.call_tool(name, arguments))
    except (RuntimeError, ValueError) as error:
        said = str(error)
    assert said.startswith(told), (name, arguments, said)



def handles(message):
    """A call for the request of a user, which the loop finds on the call stack."""
    return str(toolbox.call_tool("add", {"a": 1, "b": 2}))


# The service learns the language of the user, and which satellite speaks; the session is that of the toolbox.
kitchen = {"peer": "kitchen::1::x", "source": "kitchen", "session": {"session_id": "kitchen"}}
assert handles(Message("persona:query", {"lang": "de-DE"}, kitchen)) == '{"result": 3}'
asked = wire.wait(lambda frame: frame["type"] == "ovos.tools.invoke" and "on_behalf" in frame["context"])["context"]
assert asked["on_behalf"] == ["hive:kitchen"] and asked["source"] == "ovos-tools-toolbox", asked
assert asked["session"]["lang"] == "de-DE" and asked["session"]["session_id"].startswith("ovos-tools-toolbox-"), asked
assert "peer" not in asked, asked

limited = ToolBox(config={"timeout_ms": 200})
try:
    raise AssertionError(limited.call_tool("slow", {"seconds": 30}))
except RuntimeError as error:
    assert str(error).startswith("TimeoutError: "), error
limited.close()

# A person confirms what moves a real machine, and the model is told how; it never hears the token.
WAVE = {"subsystems": ["left_arm"], "step_ms": 1, "steps": 1}
try:
    raise AssertionError(toolbox.call_tool("assemble", WAVE))
except RuntimeError as error:
    said = str(error)
assert said.startswith("ConfirmationRequired: assemble of testbed: "), said
answer = wire.wait(lambda frame: frame["type"] == "ovos.tools.invoke.response" and "confirm" in frame["data"])
assert answer["data"]["confirm"]["token"] not in said, said
command = re.search("`ovos-tools (approve [^`]*)`", said).group(1).split()
subprocess.run([OVOS_TOOLS, *command], check=True)
assert '"success": true' in str(toolbox.call_tool("assemble", WAVE))

# -- the list is renewed --

wire.ask("ovos.tools.invoke", {"name": "grow", "args": {"tools": 2}})
until("tools that grew", lambda: "grown_2" in toolbox.tools)
conf = os.path.join(os.environ["XDG_CONFIG_HOME"], "mycroft/mycroft.conf")
with open(conf) as file:
    changed = json.load(file)
changed["PHAL"]["ovos-phal-plugin-tools"]["testbed"]["grown"] = 4
with open(conf, "w") as file:
    json.dump(changed, file)
wire.send({"type": "configuration.updated", "data": {}, "context": {}})
wire.ask("ovos.tools.reload")
until("tools after a reload", lambda: "grown_4" in toolbox.tools)

# -- beside the service on a bus --

bus = MessageBusClient()
bus.run_in_thread()
assert bus.connected_event.wait(DEADLINE)
bound = ToolBox(config={}, bus=bus)
assert bound.bus is bus and "add" in bound.tools
wire.send({"type": "ovos.persona.tools.discover", "data": {}, "context": {"test": "once"}})
wire.send({"type": "ovos.persona.tools.call", "context": {"test": "once"},
           "data": {"toolbox_id": "ovos-tools-toolbox", "name": "add", "kwargs": {"a": 1, "b": 2}}})
# When this is answered, whatever the toolbox would have said is there, too.
assert str(bound.call_tool("add", {"a": 1, "b": 2})) == '{"result": 3}'
wire.fence()
answers = [frame["data"]["toolbox_id"] for frame in wire.heard
           if frame["type"].startswith("ovos.persona.tools.") and frame["type"].endswith(".response")]
assert sorted(answers) == ["testbed", "testbed_dup"], answers
bound.unbind()
assert bound.bus is None

# The published service beside ours answers the same questions, sooner or later, and knows no tool of ours.
PUBLISHED = {"name": "now", "description": "", "argument_schema": {}, "output_schema": {}, "toolbox_id": "clock"}
bus.on("ovos.tools.list", lambda message: bus.emit(message.response({"tools": [PUBLISHED]})))
bus.on("ovos.tools.invoke", lambda message: bus.emit(message.response(
    {"name": message.data["name"], "error": f"Unknown tool: '{message.data['name']}'"})))
for _ in range(20):
    beside = ToolBox(config={"tools": {"allow": ["add", "now"]}}, bus=bus)
    assert set(beside.tools) == OWN | {"add"}, sorted(beside.tools)
    assert str(beside.call_tool("add", {"a": 1, "b": 2})) == '{"result": 3}'
    beside.unbind()
for topic in ("ovos.tools.list", "ovos.tools.invoke"):
    bus.remove_all_listeners(topic)

for host in ("ovos_tools_python", "ovos_phal_plugin_tools"):
    sys.modules[host] = sys
    hosted = ToolBox(config={}, bus=bus)
    del sys.modules[host]
    assert hosted.tools == {} and hosted.discover_tools() == [], "a service would mirror itself"

# -- requests that the user has stopped --


class Request:
    def __init__(self, session=None):
        self.context = {"session": {"session_id": session}, "skill_id": "persona"} if session else {}


REQUESTS = [
    # what happens, whether the request is over then
    ("asks", False),
    ("says asks", False),
    ("says asks stops asks", True),
    # It thinks for long, and asks only after the stop.
    ("says stops asks", True),
    ("says stops-all asks", True),
    ("says stops-other asks", False),
    # ovos-core hands a stop to the skill that is active.
    ("says asks stops-persona asks", True),
    ("says stops-persona asks", True),
    ("says asks stops-alarm asks", False),
    ("says stops-alarm asks", False),
    # What the user says next is another request; the stopped one stays stopped.
    ("says stops says asks", False),
    ("says asks stops says asks", True),
    ("says stops asks says asks", True),
    # A request that has no utterance, long after a stop.
    ("stops waits asks", False),
]
for happens, over in REQUESTS:
    now = [1000.0]
    stops, request, found = Stops(lambda: now[0]), Request("kitchen"), None
    for step in happens.split():
        now[0] += 0.1
        if step == "asks":
            found = stops.is_over(request)
        elif step == "says":
            stops.hear("kitchen")
        elif step == "waits":
            now[0] += THINKING
        else:
            stops.stop(*{"stops": ("kitchen",), "stops-all": (None,), "stops-other": ("bath",),
                         "stops-persona": ("kitchen", "persona"), "stops-alarm": ("kitchen", "alarm")}[step])
    assert found is over, (happens, found)
assert Stops().is_over(None) is False

# -- names that the mirror has itself --

def exported(toolbox_id, name):
    return {"function": {"name": name, "parameters": {}},
            "tool": {"name": name, "toolbox_id": toolbox_id, "meta": {"effect": "read"}}}


for tools, shown, nameless in [
    ([exported("a", "x")], ["x"], []),
    ([exported("a", "own")], ["a__own"], []),
    ([exported("b", "a__own"), exported("a", "own")], ["a__own"], ["a__own"]),
    ([exported("a" * 62, "own")], [], ["a" * 62 + "__own"]),
]:
    selected, left_out = Toolset({}).select(tools, {"own"}, "mirror")
    assert ([tool.shown for tool in selected], left_out) == (shown, nameless), (tools, selected, left_out)

print("the toolbox mirrors the service")
toolbox.close()
bus.close()
