"""A user who speaks to ovos-core. Writes its configuration, prints `START OVOS-CORE`, and waits for it."""
import json
import os
import threading
import time

from ovos_bus_client import Message, MessageBusClient

from scripted_model import LOOP, Model, of_readme

DEADLINE = 60
CONFIG = os.environ["XDG_CONFIG_HOME"]


class User:
    """`conf` is more of the configuration."""

    def __init__(self, conf):
        with open(f"{CONFIG}/mycroft/mycroft.conf") as file:
            before = json.load(file)
        with open(f"{CONFIG}/mycroft/mycroft.conf", "w") as file:
            json.dump({**before, **conf}, file)
        self.bus = MessageBusClient()
        self.bus.run_in_thread()
        assert self.bus.connected_event.wait(DEADLINE), "no bus"
        self._spoken, self._changed = [], threading.Condition()
        # ovos-core keeps the default session alone; a client keeps its own, as it was in what it heard last.
        self._sessions, self._spoken_in = {}, {}
        self.bus.on("speak", self._on_speak)
        self.bus.on("skill.converse.get_response.disable", self._keep)
        print("START OVOS-CORE", flush=True)
        end = time.monotonic() + DEADLINE
        while True:
            ready = self.bus.wait_for_response(Message("mycroft.intents.is_ready"), timeout=0.5)
            if ready and ready.data.get("status"):
                break
            assert time.monotonic() < end, "no ovos-core"

    def _keep(self, message):
        session = message.context["session"]
        self._sessions[session["session_id"]] = session

    def _on_speak(self, message):
        self._keep(message)
        self._spoken_in[message.context["session"]["session_id"]] = message.context["session"]
        with self._changed:
            self._spoken.append((message.context["session"]["session_id"], message.data["utterance"]))
            self._changed.notify_all()
        # What ovos-audio says of it.
        self.bus.emit(message.forward("recognizer_loop:audio_output_start"))
        self.bus.emit(message.forward("recognizer_loop:audio_output_end"))

    def heard_last(self, session):
        """The session, as it was in what was spoken in it last."""
        return self._spoken_in[session]

    def say(self, text, session, lang="en-US", keeps=None):
        """Says this. `keeps`: how the client has the session, in place of how it heard it last."""
        keeps = self._sessions.get(session, {}) if keeps is None else keeps
        self.bus.emit(Message("recognizer_loop:utterance", {"utterances": [text], "lang": lang},
                              {"session": {**keeps, "session_id": session, "lang": lang}}))

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


class PersonaUser(User):
    """One who speaks to the persona of the package's README, whose model is a script."""

    def __init__(self, conf=None, toolbox=None):
        """`toolbox` is more of the toolbox's section."""
        self.model = Model()
        persona = self.model.persona()
        persona[LOOP]["ovos-tools-toolbox"].update(toolbox or {})
        os.makedirs(f"{CONFIG}/ovos_persona")
        with open(f"{CONFIG}/ovos_persona/robot.json", "w") as file:
            json.dump(persona, file)
        super().__init__({**of_readme("intents"), **(conf or {})})
