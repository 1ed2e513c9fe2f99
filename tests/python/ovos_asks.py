"""The tool `ask` through ovos-core: answers, silence, "cancel" and "stop" are different outcomes: ovos_asks.py URL.

The one who speaks here also stands for ovos-audio.
"""
import sys
import time

from ovos_bus_client import Message

from spoken import DEADLINE, User
from wire import Wire

wire = Wire(sys.argv[1])
user = User({})
user.bus.on("mycroft.audio.is_ready", lambda message: user.bus.emit(message.response({"status": True})))


def unmatched():
    """How many utterances no intent took."""
    return sum(frame["type"] == "complete_intent_failure" for frame in wire.heard)


def ask(question, then, session="default", wait=3):
    """The result of the question, after which the user does `then`."""
    frame = {"type": "ovos.tools.invoke", "context": {"session": {"session_id": session}, "ident": question},
             "data": {"name": "ask", "args": {"question": question, "wait_seconds": wait}, "toolbox_id": "ovos"}}
    wire.send(frame)
    assert user.hears(session) == question
    then()
    answer = wire.wait(lambda frame: frame["type"] == "ovos.tools.invoke.response"
                       and frame["context"].get("ident") == question, DEADLINE)
    return answer["data"].get("result", answer["data"])


says = lambda text, session="default", keeps=None: lambda: user.say(text, session, keeps=keeps)
# The second time it works as well as the first.
for number in (1, 2):
    result = ask(f"Tea or coffee, {number}?", says("tea please"), wait=20)
    assert result == {"outcome": "answered", "answer": "tea please"}, result
assert not unmatched(), "the answer is an utterance for others, too"
held = dict(user.heard_last("default"))
result = ask("Milk?", says("never mind"), wait=20)
assert result == {"outcome": "cancelled", "answer": "never mind"}, result
result = ask("Sugar?", lambda: None)
assert result == {"outcome": "no_answer", "answer": None}, result
result = ask("Honey?", lambda: user.bus.emit(Message("mycroft.stop")), wait=20)
# A stop ends the question, and the call, too: whichever is first.
assert result == {"outcome": "cancelled", "answer": None} or "the user said stop" in result.get("error", ""), result

# After the question an utterance is one for the intents again, also when it overtakes the end of the question, or when its client still
# has the session as it was before.
for session in (None, held):
    before = unmatched()
    user.say("purple bananas", "default", keeps=session)
    wire.wait(lambda frame: unmatched() > before, DEADLINE)
# A client that does not keep the session of the device is heard as well.
result = ask("Cinnamon?", says("no thanks", keeps={}), wait=20)
assert result == {"outcome": "answered", "answer": "no thanks"}, result

# In a named session, where the client keeps the session.
user.say("hello", "kitchen")
wire.fence()
result = ask("Lemon?", says("yes", "kitchen"), session="kitchen", wait=20)
assert result == {"outcome": "answered", "answer": "yes"}, result
print("the user is asked")
