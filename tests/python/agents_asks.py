"""A persona whose robot moves only after the user has said yes, from the first utterance to the arm: agents_asks.py URL TRACE.

The model is a script, so that it can try to say yes in the user's place.
"""
import sys

from robot_trace import moves
from scripted_model import heard
from spoken import DEADLINE, PersonaUser
from wire import Wire

URL, TRACE = sys.argv[1:3]
user, wire = PersonaUser({"skills": {"get_response_timeout": 3}}), Wire(URL)
model = user.model
told = []


def report(request):
    told.append(heard(request))
    return "Done."


def asks(words, session, arm="left", lang="en-US", question="Shall I wave with the {} arm?"):
    """What the model is told when the user says this to the question of a wave."""
    told.clear()
    model.script([("wave", {"arm": arm})], report)
    user.say("wave", session, lang)
    said = user.hears(session)
    assert said == question.format(arm), said
    if words is not None:
        user.say(words, session, lang)
    assert user.hears(session) == "Done.", told
    return told[0]


before = moves(TRACE)
answer = asks("yes please", "default")
assert "Completed wave" in answer and moves(TRACE) > before, answer
# In the language of the session.
before = moves(TRACE)
answer = asks("ja", "kitchen", lang="de-DE", question="Soll ich mit dem linken Arm winken?")
assert "Completed wave" in answer and moves(TRACE) > before, answer

# What is no yes moves nothing.
before = moves(TRACE)
answer = asks("purple bananas", "kitchen")
assert "said \"purple bananas\"" in answer and "did not run" in answer, answer
answer = asks("no", "kitchen", "right")
assert answer.startswith("Error: tool 'wave' failed: PermissionError: ") and "said no" in answer, answer
answer = asks(None, "kitchen", "both", question="Shall I wave with both arms?")
assert "did not answer" in answer, answer
assert moves(TRACE) == before

# A no holds: the model that tries again is refused, and the user is not asked again.
told.clear()
model.script([("wave", {"arm": "right"})], report)
user.say("wave with the other arm", "kitchen")
assert user.hears("kitchen") == "Done." and "was denied" in told[0], told

# No argument of the model is a yes, and none is a token.
for more in ({"confirm": True}, {"confirm": "yes"}, {"confirmed": True, "user_said": "yes"}):
    told.clear()
    model.script([("wave", {"arm": "right", **more})], report)
    user.say("wave", "attic")
    user.hears("attic")
    if not told:
        user.say("no", "attic")
        user.hears("attic")
assert moves(TRACE) == before

# "Stop" instead of an answer ends it, and the loop begins nothing else.
told.clear()
model.script([("nod", {})], report)
user.say("nod", "hall")
user.hears("hall")
user.say("stop", "hall")
end = DEADLINE * 10
while not told and end:
    end -= 1
    wire.fence()
assert "the user has said stop" in told[0], told
assert moves(TRACE) == before

# A request that is not spoken cannot be asked, and the model is told what a person can do.
told.clear()
model.script([("dance", {"duration": 5})], report)
wire.send({"type": "ovos.persona.query", "data": {"persona_id": "Robot", "utterance": "wave"}, "context": {}})
answer = wire.wait(lambda frame: frame["type"] == "ovos.persona.answer", DEADLINE)
assert answer["data"]["response"] == "Done." and "`ovos-tools approve " in told[0] and "not spoken" in told[0], told
assert moves(TRACE) == before
print("the persona asks its user")
