"""The skill of docs/bus.md, in ovos-workshop, on a bus with a service whose bus callers confirm motion: skill_confirms.py PORT.

What ovos-core does is done here: it passes the next utterance of the session on to the skill that asked.
"""
import sys
import threading

from ovos_bus_client import Message, MessageBusClient
from ovos_bus_client.session import Session

from confirming_skill import ToolSkill
from ovos_tools_client import ConfirmationRequired, ToolsError

PORT = int(sys.argv[1])
DEADLINE = 60
MOVE = {"subsystems": ["left_arm"], "step_ms": 1, "steps": 1}


class Arm(ToolSkill):
    def initialize(self):
        super().initialize()
        self.answered = threading.Event()
        self.add_event("test.move", self.move)

    def move(self, message):
        try:
            self.answer = self.call_tool("assemble", **MOVE)
        except ToolsError as error:
            self.answer = error
        self.answered.set()


def connect():
    bus = MessageBusClient(host="127.0.0.1", port=PORT)
    bus.run_in_thread()
    assert bus.connected_event.wait(DEADLINE), "no bus"
    return bus


user, skill = connect(), Arm(bus=connect(), skill_id="arm.test")
spoken, said = [], ""


def on_speak(message):
    spoken.append(message.data["utterance"])
    user.emit(message.forward("recognizer_loop:audio_output_start"))
    user.emit(message.forward("recognizer_loop:audio_output_end"))


user.on("speak", on_speak)
user.on("arm.test.get_response.waiting",
        lambda message: user.emit(message.forward("arm.test.converse.get_response", {"utterances": [said], "lang": "en-US"})))


def moved(words):
    """What the service answers when the user says this to the question."""
    global said
    said = words
    spoken.clear()
    skill.answered.clear()
    user.emit(Message("test.move", context={"session": Session("kitchen").serialize()}))
    assert skill.answered.wait(DEADLINE), f"no answer; spoken: {spoken}"
    return skill.answer


answer = moved("purple bananas")
assert isinstance(answer, ConfirmationRequired) and len(spoken) == 1, (answer, spoken)
answer = moved("yes please")
assert answer.result["success"] is True, answer
assert spoken[0].startswith("Shall I assemble of testbed") and "left_arm" in spoken[0], spoken
for asked in (1, 0):
    answer = moved("no")
    assert "was denied" in str(answer) and len(spoken) == asked, (answer, spoken)
print("the skill asks its user")
skill.default_shutdown()
