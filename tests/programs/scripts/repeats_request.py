"""Uses the number of a request twice, asks for topics that it may not use, and counts the answers."""
import time

from program import Program


class Repeats(Program):
    manifest = {"requests": ["battery.level"]}
    answers = []

    def on_start(self, order):
        self.order = order
        for topic in ["battery.level", "battery.level", "ovos.tools.stop"]:
            self.say("request", request=5, topic=topic, data={}, timeout_ms=300)
        self.say("request", request=6, topic="ovos.tools.stop", data={}, timeout_ms=300)

    def on_response(self, order):
        self.answers.append([order["request"], order["answer"]["error"]["kind"]])
        # The first answer to 5 comes when its time is up.
        if order["request"] == 5:
            self.ended(self.order["run"], answers=self.answers)


Repeats().run()
