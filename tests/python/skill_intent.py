"""examples/wave_skill.py, from an utterance through ovos-core's intent service to the arm: skill_intent.py URL TRACE.

Its robot asks the bus's callers before it moves. The skill has one more intent, for a motion that is long enough to be stopped.
"""
import os
import sys
import tempfile
from pathlib import Path

from ovos_bus_client import MessageBusClient
from ovos_workshop.decorators import intent_handler

from robot_trace import assert_at_rest, moves, until_it_moves
from spoken import DEADLINE, User
from wire import Wire

URL, TRACE = sys.argv[1:3]
SKILL = Path(__file__).parents[2] / "examples/wave_skill.py"
PIPELINE = ["ovos-stop-pipeline-plugin-high", "ovos-converse-pipeline-plugin", "ovos-padacioso-pipeline-plugin-high"]

code = {}
exec(SKILL.read_text(), code)
folder = Path(tempfile.mkdtemp())
locale = folder / "locale/en-US"
os.makedirs(locale)
for name, words in (("wave.intent", "wave at me"), ("dance.intent", "dance for me"), ("cannot.wave.dialog", "I will not wave")):
    (locale / name).write_text(words + "\n")


class Skill(code["WaveSkill"]):
    ended = None

    @intent_handler("dance.intent")
    def dance(self, message):
        try:
            self.ended = self.tools.call("dance", {"duration": 30}, on_confirm=self.ask)
        except code["ToolsError"] as error:
            self.ended = error


user, wire = User({"intents": {"pipeline": PIPELINE}}), Wire(URL)
bus = MessageBusClient()
bus.run_in_thread()
assert bus.connected_event.wait(DEADLINE), "no bus"
skill = Skill(bus=bus, skill_id="wave.test", resources_dir=str(folder))

for answer, waves in (("yes", True), ("no", False)):
    before = moves(TRACE)
    user.say("wave at me", "kitchen")
    assert user.hears("kitchen") == "Shall I wave with the left arm?"
    user.say(answer, "kitchen")
    if waves:
        until_it_moves(TRACE, before)
        wire.wait(lambda frame: frame["type"] == "ovos.tools.invoke.response" and "result" in frame["data"], DEADLINE)
    else:
        assert user.hears("kitchen") == "I will not wave"
        assert moves(TRACE) == before

# "Stop" goes to the skill that is active, and ends its call.
before = moves(TRACE)
user.say("dance for me", "kitchen")
assert user.hears("kitchen").startswith("Shall I dance")
user.say("yes", "kitchen")
until_it_moves(TRACE, before)
user.say("stop", "kitchen")
answer = wire.wait(lambda frame: frame["type"] == "ovos.tools.invoke.response" and "cancelled" in str(frame["data"]), DEADLINE)
assert_at_rest(TRACE, wire)
skill.default_shutdown()
print("the skill waves and stops")
os._exit(0)
