"""A user who speaks to ovos-core and its persona of the package's README, whose model is a script.

Writes the persona and the configuration, prints `START OVOS-CORE`, and waits for it.
"""
import json
import os
import threading
import time

from ovos_bus_client import Message, MessageBusClient

from scripted_model import Model, of_readme

DEADLINE = 60
CONFIG = os.environ["XDG_CONFIG_HOME"]


class User:
    def __init__(self):
        self.model = Model()
        os.makedirs(f"{CONFIG}/ovos_persona")
        with open(f"{CONFIG}/ovos_persona/robot.json", "w") as file:
            json.dump(self.model.persona(), file)
        with open(f"{CONFIG}/mycroft/mycroft.conf") as file:
            conf = json.load(file)
        with open(f"{CONFIG}/mycroft/mycroft.conf", "w") as file:
            json.dump({**conf, **of_readme("intents"), **self.also()}, file)
        self.bus = MessageBusClient()
        self.bus.run_in_thread()
        assert self.bus.connected_event.wait(DEADLINE), "no bus"
        self._spoken, self._changed = [], threading.Condition()
        # ovos-core keeps the default session alone; a client keeps its own, as it was in what it heard last.
        self._sessions = {}
        self.bus.on("speak", self._on_speak)
        print("START OVOS-CORE", flush=True)
        end = time.monotonic() + DEADLINE
        while True:
            ready = self.bus.wait_for_response(Message("mycroft.intents.is_ready"), timeout=0.5)
            if ready and ready.data.get("status"):
                break
            assert time.monotonic() < end, "no ovos-core"

    def also(self):
        """More of the configuration."""
        return {}

    def _on_speak(self, message):
        with self._changed:
            session = message.context["session"]
            self._sessions[session["session_id"]] = session
            self._spoken.append((session["session_id"], message.data["utterance"]))
            self._changed.notify_all()
        # What ovos-audio says of it.
        self.bus.emit(message.forward("recognizer_loop:audio_output_start"))
        self.bus.emit(message.forward("recognizer_loop:audio_output_end"))

    def say(self, text, session, lang="en-US"):
        """Says this."""
        self.bus.emit(Message("recognizer_loop:utterance", {"utterances": [text], "lang": lang},
                              {"session": {**self._sessions.get(session, {}), "session_id": session, "lang": lang}}))

    def hears(self, session):
        """The next answer that is spoken in this session."""
        with self._changed:
            mine = lambda: [text for spoken_in, text in self._spoken if spoken_in == session]
            assert self._changed.wait_for(mine, DEADLINE), f"nothing is spoken in {session}: {self._spoken}"
            answer = " ".join(mine())
            self._spoken.clear()
            return answer

    def forgets(self):
        """Forgets what was spoken."""
        with self._changed:
            self._spoken.clear()
