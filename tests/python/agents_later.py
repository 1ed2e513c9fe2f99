""""Wave at me in one minute", from the utterance through ovos-core and a persona to the arm at that time: agents_later.py URL TRACE.

The minute has a few seconds here.
"""
import json
import sys
import time

from robot_trace import moves, until_it_moves
from scripted_model import heard, offered
from spoken import DEADLINE, PersonaUser
from wire import Wire

URL, TRACE = sys.argv[1:3]
user, wire = PersonaUser(toolbox={"schedule": True}), Wire(URL)
model = user.model
told = []


def report(request):
    told.append(heard(request))
    return "I will."


def asks(arguments, words="wave at me in one minute"):
    """What the model is told when it asks for this."""
    told.clear()
    model.script([("schedule_call", arguments)], report)
    user.say(words, "default")
    assert user.hears("default") == "I will.", told
    return told[0]


def event(kind, schedule_id):
    """The event of this kind about a schedule."""
    def is_meant(frame):
        data = frame["data"].get("data") or {}
        return frame["type"] == "ovos.tools.event" and frame["data"]["kind"] == kind and data.get("schedule_id") == schedule_id
    return wire.wait(is_meant, DEADLINE)["data"]["data"]


# What skills schedule is ovos-core's, which answers; the schedule door does not do it once more.
wire.send({"type": "mycroft.scheduler.schedule_event", "context": {},
           "data": {"event": "tea.is.ready", "time": time.time() + 1, "repeat": None, "data": {"cups": 2}}})

wave = {"name": "wave", "arguments": {"arm": "left"}}
before = moves(TRACE)
asked = json.loads(asks({**wave, "in_seconds": 4}))
assert len(asked["next"]) == 1, asked
assert {"schedule_call", "list_schedules", "cancel_schedule"} <= set(offered(model.requests[0]))
assert moves(TRACE) == before, "it waves at once"
until_it_moves(TRACE, before)
fired = event("schedule_fired", asked["schedule_id"])
assert fired["ok"] is True and "Completed wave" in fired["text"], fired

# What it asked for can be listed and taken back.
asked = json.loads(asks({**wave, "every_seconds": 3600}))["schedule_id"]
told.clear()
model.script([("list_schedules", {})], lambda request: [("cancel_schedule", {"schedule_id": json.loads(heard(request))["schedules"][0]["schedule_id"]})],
             report)
user.say("never mind", "default")
user.hears("default")
assert json.loads(told[0]) == {"schedule_id": asked, "cancelled": True}, told

# What cannot be scheduled is said to the model.
for arguments, why in (({"name": "fly", "in_seconds": 1}, "there is no tool 'fly'"),
                       ({**wave, "every_seconds": 5}, "every_seconds"),
                       ({"name": "wave", "arm": "left", "in_seconds": 1}, "belong into `arguments`"),
                       ({**wave}, "exactly one of")):
    assert why in asks(arguments), (arguments, told)

# An emergency stop between asking and the time: it does not wave, neither then nor later.
before = moves(TRACE)
asked = json.loads(asks({**wave, "in_seconds": 3}))["schedule_id"]
wire.send({"type": "ovos.tools.stop", "data": {"toolbox_id": "robot"}, "context": {}})
missed = event("schedule_missed", asked)
assert "suspended" in missed["why"], missed
assert moves(TRACE) == before
due = [frame["data"] for frame in wire.heard if frame["type"] == "tea.is.ready"]
assert due == [{"cups": 2}], due
print("the robot waves in one minute")
