"""What the service is asked and answers, as types. `docs/bus.md` of ovos-tools describes each field."""
from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional


#: What makes a question out of the text of a confirmation, by language. In another one the text alone is asked.
QUESTIONS = {
    "ca": "He de {}?", "da": "Skal jeg {}?", "de": "Soll ich {}?", "en": "Shall I {}?", "es": "¿Debo {}?", "fr": "Dois-je {} ?",
    "gl": "Debo {}?", "it": "Devo {}?", "nl": "Zal ik {}?", "pt": "Devo {}?", "sv": "Ska jag {}?",
}


@dataclass(frozen=True)
class Tool:
    """A tool: what it is for, and the JSON Schemas of its arguments and of its result."""

    name: str
    toolbox_id: str
    description: str = ""
    argument_schema: Dict[str, Any] = field(default_factory=dict)
    output_schema: Dict[str, Any] = field(default_factory=dict)
    #: `read`, `write`, `motion`, `safe`, `stop` or `resume`; None where the answer has no details.
    effect: Optional[str] = None
    category: Optional[str] = None
    #: The limit of each of its actions in milliseconds, where it has one of its own.
    timeout_ms: Optional[int] = None
    #: `model`, or `person` for what is of no use to a model, such as a calibration; None where the service does not say it.
    audience: Optional[str] = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Tool":
        meta = data.get("meta") or {}
        return cls(
            name=str(data.get("name", "")), toolbox_id=str(data.get("toolbox_id", "")),
            description=str(data.get("description", "")), argument_schema=dict(data.get("argument_schema") or {}),
            output_schema=dict(data.get("output_schema") or {}), effect=meta.get("effect"), category=meta.get("category"),
            timeout_ms=meta.get("timeout_ms"), audience=meta.get("audience"),
        )


@dataclass(frozen=True)
class PlannedAction:
    """An action of a plan."""

    id: str
    name: str
    subsystems: List[str]
    effect: str
    timeout_ms: int
    params: Dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What a call would do. Nothing has run."""

    name: str
    toolbox_id: str
    effect: str
    #: The longest it can take, in milliseconds; waiting is not counted.
    bound_ms: int
    #: What it holds from its first wave to its last.
    subsystems: List[str]
    #: The actions of each wave. Those of one wave run together.
    waves: List[List[PlannedAction]]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Plan":
        def action(entry: Mapping[str, Any]) -> PlannedAction:
            return PlannedAction(
                id=str(entry["id"]), name=str(entry["name"]), subsystems=list(entry.get("subsystems", ())),
                effect=str(entry.get("effect", "")), timeout_ms=int(entry.get("timeout_ms", 0)),
                params=dict(entry.get("params") or {}),
            )

        return cls(
            name=str(data.get("name", "")), toolbox_id=str(data.get("toolbox_id", "")), effect=str(data.get("effect", "")),
            bound_ms=int(data.get("bound_ms", 0)), subsystems=list(data.get("subsystems", ())),
            waves=[[action(entry) for entry in wave] for wave in data.get("waves", ())],
        )


@dataclass(frozen=True)
class Progress:
    """How far a call is."""

    call_id: str
    #: `queued`, `wave`, `action_started`, `action_ended` or `update`.
    kind: str
    #: Counted from 1; 0 while the call waits.
    wave: int
    waves: int
    elapsed_ms: int
    #: The step, in a run.
    step: Optional[str] = None
    action: Optional[str] = None
    outcome: Optional[str] = None
    #: How far the action is, from 0.0 to 1.0.
    fraction: Optional[float] = None
    message: Optional[str] = None
    data: Any = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Progress":
        return cls(
            call_id=str(data.get("call_id", "")), kind=str(data.get("kind", "")), wave=int(data.get("wave", 0)),
            waves=int(data.get("waves", 0)), elapsed_ms=int(data.get("elapsed_ms", 0)), step=data.get("step"),
            action=data.get("action"), outcome=data.get("outcome"), fraction=data.get("fraction"),
            message=data.get("message"), data=data.get("data"),
        )


@dataclass(frozen=True)
class CallResult:
    """What a tool returned."""

    call_id: str
    result: Dict[str, Any]
    #: Pictures and other media beside the result, where the call asked for them.
    content: List[Dict[str, Any]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the result does not say of itself that it is a failure (`ok` or `success`)."""
        return self.result.get("ok") is not False and self.result.get("success") is not False


@dataclass(frozen=True)
class Confirmation:
    """A call that runs once a person says yes."""

    #: For `ovos-tools approve` and `deny`.
    id: str
    token: str
    #: What the call would do, in the language of the session where the toolbox has a sentence in it. It completes "Shall I ...?".
    text: str
    #: The actions of the plan, for a person who wants to know exactly.
    plan: str
    expires_ms: int
    #: The language of `text`.
    lang: str = "en"
    #: What the configuration can say so that calls of this tool are not asked about; None where nothing is missing.
    note: Optional[str] = None

    @property
    def question(self) -> str:
        """The question to say, in the language of `text`. Its numbers have no dot: a skill takes what it says for the name of a dialog
        first, and says one that it does not have without its dots.
        """
        lang = self.lang.replace("_", "-").partition("-")[0].lower()
        said = re.sub(r"(?<=\d)\.(?=\d)", " point " if lang == "en" else ",", self.text)
        return QUESTIONS.get(lang, "{}?").format(said)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Confirmation":
        return cls(
            id=str(data.get("id", "")), token=str(data.get("token", "")), text=str(data.get("text", "")),
            plan=str(data.get("plan", "")), expires_ms=int(data.get("expires_ms", 0)), lang=str(data.get("lang") or "en"),
            note=data.get("note"),
        )


@dataclass(frozen=True)
class RunStep:
    """A step of a run. Its arguments may take values from earlier results: `{"$from": "find.pose.x"}`."""

    id: str
    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    after: List[str] = field(default_factory=list)
    toolbox_id: Optional[str] = None

    def data(self) -> Dict[str, Any]:
        """The step as the service reads it."""
        step: Dict[str, Any] = {"id": self.id, "name": self.name, "args": dict(self.args)}
        if self.after:
            step["after"] = list(self.after)
        if self.toolbox_id is not None:
            step["toolbox_id"] = self.toolbox_id
        return step


@dataclass(frozen=True)
class StepReport:
    """What became of a step."""

    id: str
    name: str
    #: `completed`, `failed`, `timed_out`, `cancelled`, `stopped`, `confirmation_required` or `not_started`.
    status: str
    result: Any = None
    error: Optional[str] = None
    reason: Optional[str] = None


@dataclass(frozen=True)
class RunResult:
    """What became of a run. `ok` is true if every step completed."""

    call_id: str
    ok: bool
    steps: List[StepReport]
    error: Optional[str] = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "RunResult":
        def step(entry: Mapping[str, Any]) -> StepReport:
            return StepReport(
                id=str(entry.get("id", "")), name=str(entry.get("name", "")), status=str(entry.get("status", "")),
                result=entry.get("result"), error=entry.get("error"), reason=entry.get("reason"),
            )

        return cls(
            call_id=str(data.get("call_id", "")), ok=bool(data.get("ok")),
            steps=[step(entry) for entry in data.get("steps", ())], error=data.get("error"),
        )
