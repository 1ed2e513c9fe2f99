"""Which tools of the service are mirrored, and under which names. Pure."""
import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple

EFFECTS = ("read", "write", "motion", "safe", "stop", "resume")
AUDIENCES = ("model", "person")
#: The longest name that models take, in characters.
LONGEST_NAME = 64


@dataclass(frozen=True)
class Tool:
    """A tool of the service, as models see it (`shown`) and as the service knows it (`toolbox_id`, `name`)."""

    shown: str
    toolbox_id: str
    name: str
    description: str
    effect: str
    arguments: Dict[str, Any]


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def _names(pattern: str, toolbox_id: str, name: str) -> bool:
    """Whether a pattern names this tool. With `__` it is one for toolboxes and one for their tools, which are matched apart: a
    toolbox chooses the names of its tools, and `robot__*` names no tool `robot__wave` of another one."""
    apart = [(pattern[:at], pattern[at + 2:]) for at in range(len(pattern)) if pattern.startswith("__", at)]
    if not apart:
        return _matches(pattern, name)
    return any(_matches(of_toolbox, toolbox_id) and _matches(of_tool, name) for of_toolbox, of_tool in apart)


class Filter:
    """`{"allow": [...], "deny": [...]}`: what `deny` names is left out; `allow` leaves out everything else. `*` stands for
    any text."""

    def __init__(self, key: str, section: Any, known: Optional[tuple] = None):
        section = {} if section is None else section
        if not isinstance(section, dict) or set(section) - {"allow", "deny"}:
            raise ValueError(f"`{key}` is {section!r}; expected an object with the keys \"allow\" and \"deny\"")
        self.allow = self._patterns(key, "allow", section.get("allow"), known)
        self.deny = self._patterns(key, "deny", section.get("deny"), known) or []

    @staticmethod
    def _patterns(key: str, part: str, words: Any, known: Optional[tuple]) -> Optional[List[str]]:
        if words is None:
            return None
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"`{key}.{part}` is {words!r}; expected a list of strings")
        for word in words:
            if known and word not in known:
                raise ValueError(f"`{key}.{part}` names {word!r}; expected some of {', '.join(known)}")
        return words

    def permits(self, text: str) -> bool:
        """Whether this is mirrored."""
        return self._permits(lambda pattern: _matches(pattern, text))

    def permits_tool(self, toolbox_id: str, name: str) -> bool:
        """Whether this tool is mirrored, which the patterns name by its name or by `<toolbox_id>__<name>`."""
        return self._permits(lambda pattern: _names(pattern, toolbox_id, name))

    def _permits(self, named: Callable[[str], bool]) -> bool:
        return not any(map(named, self.deny)) and (self.allow is None or any(map(named, self.allow)))


class Toolset:
    """The tools that all filters of a configuration permit. Raises ValueError for a filter that says nothing clear.

    `audience` says for whom tools are shown: those for a person, such as a calibration, are left out unless it names them. Tools that
    stop one toolbox are left out, because the mirror has two stops of its own.
    """

    def __init__(self, config: Dict[str, Any]):
        self.tools = Filter("tools", config.get("tools"))
        self.toolboxes = Filter("toolboxes", config.get("toolboxes"))
        self.effects = Filter("effects", config.get("effects"), EFFECTS)
        self.audience = config.get("audience", ["model"])
        if not isinstance(self.audience, list) or any(one not in AUDIENCES for one in self.audience):
            raise ValueError(f"`audience` is {self.audience!r}; expected a list of some of {', '.join(AUDIENCES)}")

    def select(self, exported: List[Dict[str, Any]], taken: set, own_id: str) -> Tuple[List[Tool], List[str]]:
        """The tools from the answer to `ovos.tools.export` in the format `openai` with `detail`, and those that are permitted and have
        no name left. `taken` are names of the mirror's own; `own_id` is a toolbox that is never mirrored: the mirror itself.
        """
        tools, nameless = [], []
        taken = set(taken)
        for export in exported:
            function, tool = export["function"], export["tool"]
            name, toolbox_id, meta = tool["name"], tool["toolbox_id"], tool["meta"]
            effect, audience = meta["effect"], meta.get("audience", "model")
            if toolbox_id == own_id or not self.permits(name, toolbox_id, effect, audience):
                continue
            shown = function["name"]
            if shown in taken:
                shown = f"{toolbox_id}__{name}"
            if shown in taken or len(shown) > LONGEST_NAME:
                nameless.append(f"{toolbox_id}__{name}")
                continue
            taken.add(shown)
            description = function.get("description", "")
            tools.append(Tool(shown, toolbox_id, name, description, effect, function["parameters"]))
        return tools, nameless

    def permits(self, name: str, toolbox_id: str, effect: str, audience: str) -> bool:
        """Whether a tool is mirrored. One that stops or lifts a stop never is."""
        return (effect not in ("stop", "resume") and audience in self.audience and self.tools.permits_tool(toolbox_id, name)
                and self.toolboxes.permits(toolbox_id) and self.effects.permits(effect))
