"""From an utterance through ovos-core and ovos-persona to the simulated robot's arm, and back: agents_persona.py URL TRACE.

Writes the persona and the configuration of the package's README, prints `START OVOS-CORE`, and waits for it.
"""
import json
import os
import sys
import threading
import time

from ovos_bus_client import Message, MessageBusClient

from robot_trace import assert_at_rest, moves, until_it_moves
from scripted_model import Model, heard, of_readme, offered
from wire import Wire

URL, TRACE = sys.argv[1:3]
DEADLINE = 60
CONFIG = os.environ["XDG_CONFIG_HOME"]

model = Model()
os.makedirs(f"{CONFIG}/ovos_persona")
with open(f"{CONFIG}/ovos_persona/robot.json", "w") as file:
    json.dump(model.persona(), file)
with open(f"{CONFIG}/mycroft/mycroft.conf") as file:
    conf = json.load(file)
with open(f"{CONFIG}/mycroft/mycroft.conf", "w") as file:
    json.dump({**conf, **of_readme("intents")}, file)

user, wire = MessageBusClient(), Wire(URL)
user.run_in_thread()
assert user.connected_event.wait(DEADLINE), "no bus"
spoken, changed = [], threading.Condition()


def on_speak(message):
    with changed:
        spoken.append((message.context["session"]["session_id"], message.data["utterance"]))
        changed.notify_all()


user.on("speak", on_speak)
print("START OVOS-CORE", flush=True)
end = time.monotonic() + DEADLINE
while True:
    ready = user.wait_for_response(Message("mycroft.intents.is_ready"), timeout=0.5)
    if ready and ready.data.get("status"):
        break
    assert time.monotonic() < end, "no ovos-core"


def say(text, session):
    user.emit(Message("recognizer_loop:utterance", {"utterances": [text], "lang": "en-US"},
                      {"session": {"session_id": session}}))


def hears(session):
    """The next answer that is spoken in this session."""
    with changed:
        mine = lambda: [text for spoken_in, text in spoken if spoken_in == session]
        assert changed.wait_for(mine, DEADLINE), f"nothing is spoken in {session}: {spoken}"
        answer = " ".join(mine())
        spoken.clear()
        return answer


# The arm waves, and the user hears what the tool answered.
model.script([("wave", {"arm": "left"})], lambda request: "I waved: " + json.loads(heard(request))["message"])
say("wave with your left arm", "default")
assert hears("default") == "I waved: Completed wave" and moves(TRACE) > 0
assert "stop_moving" in offered(model.requests[0]) and "drone" not in str(offered(model.requests[0]))

# "Stop" ends the dance, and the loop does not begin another one: in a session that the service does not know.
told, over = [], threading.Event()


def wave_again(request):
    told.append(heard(request))
    return [("wave", {"arm": "left"})]


def report(request):
    told.append(heard(request))
    over.set()
    return "I was stopped."


model.script([("dance", {"duration": 30})], wave_again, report)
before = moves(TRACE)
say("dance", "kitchen")
until_it_moves(TRACE, before)
say("stop", "kitchen")
assert over.wait(DEADLINE), f"the loop goes on: {told}"
assert "cancelled" in told[0] and "the user has said stop" in told[1], told
assert_at_rest(TRACE, wire)

# "Stop" before the model has called anything.
stopped, before = threading.Event(), moves(TRACE)
user.on("ovos.stop", lambda message: stopped.set())
told.clear()
over.clear()


def thinks(request):
    say("stop", "kitchen")
    assert stopped.wait(DEADLINE), "no stop"
    # When it has read something, or was kept from it, the toolbox has heard the stop, too.
    return [("motor_status", {"subsystem": "all"})]


model.script(thinks, wave_again, report)
say("dance again", "kitchen")
assert over.wait(DEADLINE) and "the user has said stop" in told[1], told
assert moves(TRACE) == before

# What the user says next is done.
model.script([("wave", {"arm": "right"})], lambda request: "I waved: " + json.loads(heard(request))["message"])
spoken.clear()
say("wave with your right arm", "kitchen")
assert hears("kitchen") == "I waved: Completed wave" and moves(TRACE) > before
print("the persona waves and stops")
