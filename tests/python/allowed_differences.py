"""What ovos-tools answers differently from the reference, and why: the whole list.

A rule quotes the decision that allows it ("what ovos-tools does" of the protocol facts, or the design) and is
as narrow as the decision. A difference that no rule allows is a bug on one of the two sides.
"""
import json
import re
from dataclasses import dataclass
from typing import Any, Callable

from differential_requests import SESSIONS

ABSENT = "<absent>"
TESTBED = sorted([("testbed", n) for n in ["add", "bad_output", "dup", "echo", "fail", "ping", "slow"]] + [("testbed_dup", "dup")])


@dataclass
class Difference:
    """One answer of one row that differs: `path` is `answers` (the number of them), `type`, `data.KEY` or `context.KEY`."""
    row: str
    path: str
    reference: Any
    ours: Any

    def __str__(self):
        def cut(value):
            text = repr(value)
            return text if len(text) < 600 else text[:400] + " ... " + text[-150:]
        return f"{self.row}: {self.path}\n      reference: {cut(self.reference)}\n      ours:      {cut(self.ours)}"


@dataclass
class Rule:
    name: str
    quote: str
    allows: Callable[[Difference], bool]


def reason_appended(d):
    return d.path == "data.error" and both_text(d) and d.ours.startswith(d.reference + ": ") and len(d.ours) > len(d.reference) + 2


def unhashable_name(d):
    if re.match(r"(get|invoke)/name ", d.row) and d.path == "answers" and d.reference == [] and len(d.ours) == 1:
        return str(d.ours[0]["data"].get("error")).startswith("Unknown tool: ")
    return d.row.startswith("call/name ") and d.path == "data.error" and both_text(d) \
        and "unhashable type" in d.reference and d.ours.startswith("ValueError: Unknown tool ")


def big_integer(d):
    if not re.search(r"/add/integer \d+ '9999", d.row):
        return False
    if d.path == "data.error":
        return isinstance(d.reference, str) and d.ours == ABSENT
    return d.path == "data.result" and d.reference == ABSENT and isinstance(d.ours, dict) and d.ours["result"] > 10 ** 4299


def whole_of_the_arguments(d):
    """Nothing, null, an empty text, an empty list, and the JSON text of an object: rows 0, 1, 3 and 5 of the list."""
    if not re.search(r"/k?w?args type [0135] ", d.row) or not str(d.reference).startswith("RuntimeError: Tool ") and d.reference != ABSENT:
        return False
    if d.path == "data.error":
        return "called with unexpected type arguments" in str(d.reference) and (d.ours == ABSENT or "called with" not in d.ours)
    return d.path == "data.result" and d.reference == ABSENT


def flag_for_a_number(d):
    """`True` and `False` in the place of an integer or a number, which the reference takes for 1 and 0."""
    if not re.search(r"/add/integer \d+ '(True|False)'$|/slow/number \d+ 'False'$", d.row):
        return False
    if d.path == "data.error":
        return d.reference == ABSENT and "Tool input validation failed for " in str(d.ours) and re.search(r", got (true|false)$", d.ours) is not None
    return d.path == "data.result" and d.ours == ABSENT


def reload_names_tools(d):
    return d.row in ("reload", "reload/again") and d.path == "data.tools" and d.reference == ABSENT \
        and sorted((t["toolbox_id"], t["name"]) for t in d.ours) == TESTBED


def reload_leaks(d):
    return d.row.startswith("reloaded/") and d.path == "answers" and len(d.reference) > len(d.ours) > 0 \
        and unique(d.reference) == unique(d.ours) and len(unique(d.ours)) == len(d.ours)


def two_owners(d):
    if d.row not in ("get/dup", "invoke/dup"):
        return False
    if d.path == "data.error":
        return d.reference == ABSENT and names_both(d.ours)
    # The error takes the place of the tool's definition (get) or result (invoke, which still echoes the name).
    return d.path.startswith("data.") and d.ours == ABSENT and (d.row, d.path) != ("invoke/dup", "data.name")


def owner_picked(d):
    if d.row in ("get/dup of testbed", "invoke/dup of testbed"):
        return (d.path, d.reference, d.ours) in [("data.toolbox_id", "testbed_dup", "testbed"),
                                                 ("data.result", {"owner": "testbed_dup"}, {"owner": "testbed"})]
    if d.row in ("invoke/dup of unknown", "invoke/add of testbed_dup", "get/add of unknown"):
        if d.path == "data.error":
            return d.reference == ABSENT and isinstance(d.ours, str) and d.ours.startswith("Unknown tool: ")
        return d.path.startswith("data.") and d.ours == ABSENT and not (d.row.startswith("invoke/") and d.path == "data.name")
    return False


def owner_alias(d):
    if not re.match(r"(get|invoke)/alias ", d.row):
        return False
    if d.path == "data.error":
        return str(d.reference).startswith("Unknown tool: ") and d.ours == ABSENT
    if d.path == "data.result":
        return d.reference == ABSENT and d.ours == {"owner": d.row.split()[-1]}
    return d.row.startswith("get/") and d.path.startswith("data.") and d.reference == ABSENT


def default_session(d):
    if d.path != "context.session" or not isinstance(d.reference, dict) \
            or d.reference.get("session_id") != "default" or len(d.reference) <= 3:
        return False
    if d.ours == {"session_id": "default"}:
        return True
    # A session without a usable id is no default one: it may be carried through as it came.
    sent = re.match(r"session/(?:invoke )?(\d+) ", d.row)
    return bool(sent) and d.ours == SESSIONS[int(sent[1])] and d.ours.get("session_id") != "default"


def list_filtered(d):
    return d.row == "list/data is ignored" and d.path == "data.tools" and d.ours == []


def busy(d):
    return d.row == "busy" and d.path == "data.ping_first" and (d.reference, d.ours) == (False, True)


def status_topics(d):
    if d.path != "answers" or not d.row.startswith("status/"):
        return False
    if d.row.startswith("status/mycroft.PHAL."):
        return len(d.reference) == 1 and d.ours == []
    return d.row.startswith("status/mycroft.ovos_tools.") and d.reference == [] and len(d.ours) == 1 \
        and d.ours[0]["data"] == {"status": True} and d.ours[0]["context"].get("destination") == "A"


def deep_nesting(d):
    return d.row == "deep nesting" and d.path == "answers" and d.reference == [] and d.ours[0]["type"] == "still there"


def not_json(d):
    return d.row.startswith("malformed/NaN") and d.path == "answers" and len(d.reference) == 1 and d.ours == []


def unreadable(d):
    return d.row == "malformed/lone surrogate" and d.path == "answers" and d.reference == [] and len(d.ours) == 1 \
        and str(d.ours[0]["data"].get("error")).startswith("ValueError: the request's data cannot be read: ")


def both_text(d):
    return isinstance(d.reference, str) and isinstance(d.ours, str) and ABSENT not in (d.reference, d.ours)


def names_both(text):
    return isinstance(text, str) and re.search(r"\btestbed\b", text) is not None and "testbed_dup" in text


def unique(frames):
    """The distinct answers without the session, which has a rule of its own."""
    return {json.dumps({**f, "context": {k: v for k, v in f["context"].items() if k != "session"}}, sort_keys=True)
            for f in frames}


RULES = [
    Rule("reason appended", "after a fixed string we add `: reason` (which argument, which value, what is accepted; "
         "for a failed tool the cause), never replace it", reason_appended),
    Rule("unhashable name", "`name` that is a list or object | no answer at all | `Unknown tool: ...` error", unhashable_name),
    Rule("big integer", "integers beyond 64 bits survive", big_integer),
    Rule("whole of the arguments", "for a native tool nothing, null, an empty text, an empty list and the JSON text of an "
         "object are the arguments that they stand for", whole_of_the_arguments),
    Rule("flag for a number", "a native tool takes no `true` for a number: `move_base distance=true` drives nowhere",
         flag_for_a_number),
    Rule("reload names tools", "`loaded`, `total_tools` and `tools`", reload_names_tools),
    Rule("reload leaks", "`loaded`, `total_tools`; not atomic, handlers leak | atomic, no call is lost", reload_leaks),
    Rule("two owners", "a name owned by two toolboxes | the last one loaded wins | [S] error that names both", two_owners),
    Rule("owner picked", "`toolbox_id` in the request picks one", owner_picked),
    Rule("owner alias", "`toolbox_id` in the request, or the alias `<toolbox_id>__<name>`, picks one (design, section 4)",
         owner_alias),
    Rule("default session", "replaced by the replier's own ~850-byte session | session carried through; when the request "
         'has none or `default`: `{"session_id": "default"}`', default_session),
    Rule("list filtered", "`ovos.tools.list` takes `toolbox_id` and `effect` as filters", list_filtered),
    Rule("busy", "six slow calls | block everything | block nothing", busy),
    Rule("status topics", "`mycroft.PHAL.*` of the host process | `mycroft.<own name>.is_alive / is_ready / all_loaded` "
         '(own name `ovos_tools`), and `mycroft.PHAL.*` only with `"answer_as_phal": true`', status_topics),
    Rule("deep nesting", "deep nesting (1000+ levels) | disconnects Python services for 5 s | ours is untouched", deep_nesting),
    Rule("not JSON", "a malformed message is dropped and never tears down the connection (NaN is not JSON)", not_json),
    Rule("unreadable", "a request with a usable envelope gets a clear error (design, section 4)", unreadable),
]
