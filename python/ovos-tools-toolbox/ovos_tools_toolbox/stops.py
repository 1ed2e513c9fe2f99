"""Which requests of users are over, because the user has said stop.

An agentic loop knows no stop: the call that a stop has ended is an observation to it, and it goes on with the next call, or
makes its first one only after the stop. So what a loop does for a request is refused once the user has stopped it. A request
is known by its bus message, which is on the call stack of the loop. Does no IO.
"""
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Optional, Tuple

#: For this many seconds after a stop a request without an utterance since is taken for one from before it.
THINKING = 60.0
#: How many requests are remembered.
REQUESTS = 256


class Stops:
    """What was said in each session. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._lock = threading.Lock()
        self._said: Dict[str, float] = {}
        #: By session, and by the skill that is stopped; None stands for all of them.
        self._stopped: Dict[Tuple[Optional[str], Optional[str]], float] = {}
        self._running: Deque[Any] = deque(maxlen=REQUESTS)
        self._over: Deque[Any] = deque(maxlen=REQUESTS)

    def hear(self, session: str) -> None:
        """The user says something in this session."""
        with self._lock:
            self._forget(self._said)
            self._said[session] = self._clock()

    def stop(self, session: Optional[str], skill: Optional[str] = None) -> None:
        """The user says stop: in this session, or in all of them (None); to this skill, or to all of them (None)."""
        with self._lock:
            self._forget(self._stopped)
            self._stopped[session, skill] = self._clock()
            for request in list(self._running):
                if session in (None, session_of(request)) and skill in (None, skill_of(request)):
                    self._running.remove(request)
                    self._over.append(request)

    def is_over(self, request: Any) -> bool:
        """Whether the user has stopped this request (a bus message); None is never over."""
        if request is None:
            return False
        session = session_of(request)
        with self._lock:
            if any(request is one for one in self._over):
                return True
            if any(request is one for one in self._running):
                return False
            never = -THINKING
            skills = (None, skill_of(request))
            stopped = max(self._stopped.get((one, skill), never) for one in (session, None) for skill in skills)
            over = stopped > self._said.get(session, never) and self._clock() - stopped < THINKING
            (self._over if over else self._running).append(request)
            return over

    def _forget(self, times: Dict[Any, float]) -> None:
        now = self._clock()
        for session in [session for session, at in times.items() if now - at > THINKING]:
            del times[session]


def session_of(message: Any) -> str:
    """The session of a message; `default` where it has none."""
    session = message.context.get("session")
    named = session.get("session_id") if isinstance(session, dict) else None
    return named if isinstance(named, str) and named else "default"


def skill_of(message: Any) -> Optional[str]:
    """The skill that handles a message, such as the persona's."""
    skill = message.context.get("skill_id")
    return skill if isinstance(skill, str) and skill else None
