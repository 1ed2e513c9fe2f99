"""From an utterance through ovos-core and ovos-persona to the simulated robot's arm, and back: agents_persona.py URL TRACE."""
import json
import sys
import threading

from robot_trace import assert_at_rest, moves, until_it_moves
from scripted_model import heard, offered
from spoken import DEADLINE, PersonaUser
from wire import Wire

URL, TRACE = sys.argv[1:3]
user, wire = PersonaUser(), Wire(URL)
model, say, hears = user.model, user.say, user.hears

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


# ovos-core hands the stop of a session that the persona is active in to the persona alone; there it is the first one.
for session in ("kitchen", "default"):
    told.clear()
    over.clear()
    model.script([("dance", {"duration": 30})], wave_again, report)
    before = moves(TRACE)
    say("dance", session)
    until_it_moves(TRACE, before)
    say("stop", session)
    assert over.wait(DEADLINE), f"the loop goes on: {told}"
    assert "cancelled" in told[0] and "the user has said stop" in told[1], (session, told)
    assert_at_rest(TRACE, wire)

# "Stop" before the model has called anything.
stopped, before = threading.Event(), moves(TRACE)
user.bus.on("ovos.stop", lambda message: stopped.set())
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
user.forgets()
say("wave with your right arm", "kitchen")
assert hears("kitchen") == "I waved: Completed wave" and moves(TRACE) > before
print("the persona waves and stops")
