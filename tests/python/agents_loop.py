"""The loops of ovos-agentic-loop, with a scripted model, wave the simulated robot's arm; and what ends a motion of theirs:
agents_loop.py URL TRACE.

As `agents_loop.py dance` it dances until it is killed.
"""
import subprocess
import sys
import threading
from contextlib import contextmanager

from ovos_agentic_loop.factory import NativeToolCallEnginePlugin, ReActLoopEnginePlugin
from ovos_plugin_manager.templates.agents import AgentMessage, MessageRole

from robot_trace import assert_at_rest, moves, until_it_moves
from scripted_model import LOOP, Model, heard, offered
from wire import Wire

DEADLINE = 60
DANCE = ("dance", {"duration": 30})

model = Model()
config = model.persona()[LOOP]


def ask(loop, text):
    return loop.continue_chat([AgentMessage(MessageRole.USER, text)]).content


def waves(loop, *turns):
    model.script(*turns)
    return ask(loop, "Wave with your left arm.")


if sys.argv[1] == "dance":
    model.script([DANCE])
    ask(NativeToolCallEnginePlugin(config), "Dance.")

URL, TRACE = sys.argv[1:3]
wire = Wire(URL)
native, react = NativeToolCallEnginePlugin(config), ReActLoopEnginePlugin(config)
toolbox = native.toolboxes[0]

# It finds the tool and waves; the reply has what the tool answered.
reply = waves(native, [("wave", {"arm": "left"})], lambda request: f"The tool says: {heard(request)}")
assert '"message": "Completed wave"' in reply and '"simulated": true' in reply and "left_arm" in reply, reply
assert moves(TRACE) > 0
assert {"wave", "emergency_stop", "stop_moving"} <= set(offered(model.requests[0])), offered(model.requests[0])
assert "reset_stop" not in offered(model.requests[0])

# A loop whose model reads its tools in the prompt.
before = moves(TRACE)
reply = waves(react, 'Action: wave\nAction Input: {"arm": "left"}', lambda request: f"FINAL_ANSWER: {heard(request)}")
assert '"message": "Completed wave"' in reply and moves(TRACE) > before, reply

prompt = model.requests[0]["messages"][0]["content"]
assert '"name": "wave"' in prompt and len(prompt.encode()) < 10_000, len(prompt.encode())

# What is wrong reaches the model, and nothing moves.
before = moves(TRACE)
for arguments, told in [
    ({"arm": "middle"}, 'arm: expected one of "left", "right", "both", got "middle"'),
    ({"arm": ["left"]}, "Tool input validation failed for 'wave' in ToolBox 'robot'"),
]:
    reply = waves(native, [("wave", arguments)], heard)
    assert reply.startswith("Error: tool 'wave' failed: ") and told in reply, reply
assert moves(TRACE) == before


@contextmanager
def dancing(loop, *then):
    """Dances meanwhile; then this is what the loop's model says. Gives the loop's reply in a list."""
    model.script([DANCE], *then)
    replies, moved = [], moves(TRACE)
    thread = threading.Thread(target=lambda: replies.append(ask(loop, "Dance.")))
    thread.start()
    until_it_moves(TRACE, moved)
    yield replies
    thread.join(DEADLINE)
    assert replies, "the loop has not ended"
    assert_at_rest(TRACE, wire)


def user_stop():
    wire.send({"type": "ovos.stop", "data": {}, "context": {"session": {"session_id": "default"}}})


for stop in (user_stop, toolbox.stop, lambda: toolbox.call_tool("stop_moving", {})):
    with dancing(native, heard) as replies:
        stop()
    assert '"success": false' in replies[0] and "cancelled" in replies[0], replies

# A loop that is killed cannot stop what it moves.
moved = moves(TRACE)
killed = subprocess.Popen([sys.executable, __file__, "dance"])
until_it_moves(TRACE, moved)
killed.kill()
killed.wait()
wire.wait(lambda frame: frame["type"] == "ovos.tools.invoke.response"
          and "its door disconnected" in str(frame["data"]), DEADLINE)
assert_at_rest(TRACE, wire)

# The model of another loop stops everything; this stays so.
with dancing(native, [("wave", {})], heard) as replies:
    said = str(react.toolboxes[0].call_tool("emergency_stop", {}))
    assert "until an operator lifts the stop" in said, said
assert "emergency stop state" in replies[0], replies
print("the loops wave and stop")
toolbox.close()
