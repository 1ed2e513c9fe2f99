"""Asks the user by voice whether a call may run, in the user's own turn.

The question is the service's sentence, and the answer is what the same session says next: ovos-core hands it over because a skill
waits for it. Nothing that a model writes can be such an answer.
"""
import threading
from collections import deque
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Callable, Deque, List, Optional

from ovos_bus_client import Message
from ovos_utils.log import LOG

from .stops import session_of

#: How the assistant knows the one that asks.
SKILL_ID = "ovos-tools-toolbox"
#: Requests that are not spoken: their answer is a message to the program that asks.
OUT_OF_BAND = ("ovos.persona.query",)
#: How many requests are remembered that had no clear answer.
REQUESTS = 256


class Unasked(Exception):
    """The user cannot be asked. The text says why."""


@dataclass(frozen=True)
class Answer:
    """What the user says to a question."""

    #: True for a clear yes, False for a clear no, None for anything else.
    yes: Optional[bool]
    #: The words; None for silence.
    words: Optional[str]


class Voice:
    """A skill that only asks. It is made for the first question, where ovos-workshop is installed, as it is beside every persona."""

    def __init__(self, bus: Callable[[], Any]):
        self._bus = bus
        self._lock = threading.Lock()
        self._skill: Any = None
        self._unclear: Deque[Message] = deque(maxlen=REQUESTS)
        #: The sessions in which a question is asked.
        self._asking: List[str] = []

    def ask(self, question: str, request: Optional[Message]) -> Answer:
        """The answer of the one who spoke the request. Blocks until there is one, or for the time that skills wait for it. Raises
        Unasked; also where the same request had a question without a clear answer before, so that no model nags.
        """
        if request is None or request.msg_type in OUT_OF_BAND:
            raise Unasked("the request was not spoken, so the user cannot be asked by voice")
        if any(request is one for one in self._unclear):
            raise Unasked("the user was asked by voice before and gave no clear answer")
        skill, session = self._made(), session_of(request)
        self._asking.append(session)
        try:
            answer = skill.ask(question, _of_skill(request))
        finally:
            self._asking.remove(session)
        if answer.yes is None:
            self._unclear.append(request)
        return answer

    def abort(self, session: Optional[str]) -> None:
        """Takes back the questions of this session, or all of them (None): the user has said stop."""
        for asked_in in {one for one in self._asking if session in (None, one)}:
            context = {"skill_id": SKILL_ID, "session": {"session_id": asked_in}}
            self._bus().emit(Message("mycroft.skills.abort_question", {"skill_id": SKILL_ID}, context))

    def close(self) -> None:
        """Asks no longer."""
        with self._lock:
            skill, self._skill = self._skill, None
        if skill is not None:
            skill.default_shutdown()

    def _made(self) -> Any:
        with self._lock:
            if self._skill is None:
                try:
                    self._skill = _skill(self._bus())
                except Exception as error:
                    LOG.warning(f"{SKILL_ID} cannot ask by voice: {error}")
                    raise Unasked("this program has no voice: ovos-workshop is not installed, or its skills do not start") from error
            return self._skill


def _of_skill(request: Message) -> Message:
    """The request as the asking skill handles it. The loop's own copy stays as it is."""
    context = {**deepcopy(request.context), "skill_id": SKILL_ID}
    return Message(request.msg_type, deepcopy(request.data), context)


def _skill(bus: Any) -> Any:
    """A skill that asks. The import is here because loops run without a voice, too."""
    from ovos_bus_client.session import SessionManager
    from ovos_workshop.app import OVOSAbstractApplication

    class Asker(OVOSAbstractApplication):
        def ask(self, question: str, request: Message) -> Answer:
            """Asks once. What it calls finds the request on the call stack, as in every handler of a skill."""
            # The next utterance is offered to those that the session names; ovos-core adds a skill whose intent it has matched.
            session = SessionManager.get(request)
            session.add_converse_handler(self.skill_id)
            request.context["session"] = session.serialize()
            try:
                words = self.ask_yesno(question)
            finally:
                SessionManager.get(request).remove_converse_handler(self.skill_id)
            return Answer({"yes": True, "no": False}.get(words), words)

        def get_response(self, *args: Any, **kwargs: Any) -> Optional[str]:
            """As in every skill, but silence ends it: without a number of retries the microphone would be opened for ever."""
            return super().get_response(*args, **{**kwargs, "num_retries": 0})

        def speak_dialog(self, key: str, data: Any = None, expect_response: bool = False, wait: Any = False,
                         render_callback: Any = None) -> None:
            """Says the question as it is. As the name of a dialog it would lose its dots, and `1.5` would become `1 5`."""
            self.speak(key, expect_response, wait)

    return Asker(skill_id=SKILL_ID, bus=bus)
