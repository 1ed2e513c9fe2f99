"""Sends one list of requests to the reference service and to ovos-tools and explains every difference.

    differential.py --reference ws://... [--ours ws://... [--same]] [--answers FILE [--update]]

Each service sits on a bus of its own. A difference is explained by exactly one rule of allowed_differences.py;
one without a rule fails the run, and so does a rule without a difference. `--answers` compares what the
reference says with what it said when the file was written, so that a new release of it cannot pass unnoticed.
"""
import argparse
import json
import sys
import threading

from allowed_differences import RULES, Difference
from differential_requests import Row, after_reload, rows
from wire import Wire, context_key

BATCH = 50
ABSENT = "<absent>"
# Tools that only tests/toolboxes/testbed has; they are left out of what the two sides list.
ONLY_OURS = {"ask", "assemble", "brake", "configure", "count_marks", "delegate", "emit_event", "grow", "last_message", "reset_stop", "show",
             "set_mark", "stop", "version"}
# Texts for people and annotations: schemas agree when they accept the same values.
ANNOTATIONS = {"title", "description", "$schema", "format"}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--reference", required=True)
    options.add_argument("--ours")
    options.add_argument("--answers")
    options.add_argument("--update", action="store_true")
    options.add_argument("--same", action="store_true", help="both are the reference: no difference is allowed")
    options = options.parse_args()

    sides = {"reference": options.reference, **({"ours": options.ours} if options.ours else {})}
    answers = ask_all(sides)
    complaints = []
    if options.answers:
        complaints += check_saved(options.answers, answers["reference"], options.update)
    if options.ours:
        complaints += explain(answers["reference"], answers["ours"], [] if options.same else RULES)
    print(f"{len(answers['reference'])} requests, {len(complaints)} complaints")
    for complaint in complaints[:40]:
        print("-", complaint)
    sys.exit(bool(complaints))


# ---- asking

def ask_all(sides):
    answers, failures = {}, {}

    def ask_side(side, url):
        try:
            answers[side] = ask(url)
        except Exception as failure:  # shown by the main thread, which has to end the run
            failures[side] = failure

    threads = [threading.Thread(target=ask_side, args=side) for side in sides.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for side, failure in failures.items():
        raise RuntimeError(f"asking {side} failed") from failure
    return answers


def ask(url):
    """All rows' answers by row id, each a list of frames in a fixed order."""
    wire = Wire(url)
    wire.fence()
    answers = {}
    ordinary = [marked(r) for r in rows()]
    together = [r for r in ordinary if not r.alone]
    for start in range(0, len(together), BATCH):
        answers.update(ask_together(wire, together[start:start + BATCH]))
    for r in ordinary:
        if r.alone:
            answers[r.id] = ask_alone(wire, url, r)
    answers["busy"] = ask_while_busy(wire)
    for r in map(marked, after_reload()):
        answers.update(ask_together(wire, [r]))
    # Last: the reference is away for seconds after this one.
    answers["deep nesting"] = ask_deep(wire)
    wire.close()
    return {name: tidy(frames) for name, frames in answers.items()}


def marked(r):
    """The row with its mark in the context, by which its answers are known; alone where it can bear none."""
    if isinstance(r.frame, dict) and not r.alone:
        return Row(r.id, {**r.frame, "context": {**r.frame.get("context", {}), "n": r.id}})
    if isinstance(r.frame, str) and not r.alone:
        return Row(r.id, r.frame.replace("%n", json.dumps(r.id)[1:-1]))
    return r


def ask_together(wire, batch):
    wire.heard.clear()
    for r in batch:
        wire.send(r.frame)
    wire.fence()
    heard = [f for f in wire.heard if context_key(f, "mark") is None]
    answers = {r.id: [] for r in batch}
    for frame in heard:
        # What bears no mark belongs to no request; it is kept, so that it shows as a difference.
        answers.setdefault(context_key(frame, "n") or f"unmarked {frame['type']}", []).append(frame)
    return answers


def ask_alone(wire, url, r):
    """Sends a row on a connection of its own, because the bus may drop the sender of a malformed frame."""
    wire.heard.clear()
    own = Wire(url)
    own.send(r.frame)
    wire.fence()
    own.close()
    copy = r.frame if isinstance(r.frame, dict) else None
    return [f for f in wire.heard
            if context_key(f, "mark") is None and f["type"] is not None and f != copy and not is_text_of(f, r.frame)]


def is_text_of(frame, text):
    try:
        return isinstance(text, str) and json.loads(text.lstrip("\ufeff")) == frame
    except ValueError:
        return False


def ask_while_busy(wire):
    """Is `ping` answered before forty slow calls that were there first?"""
    wire.heard.clear()
    for i in range(40):
        wire.send({"type": "ovos.tools.invoke", "data": {"name": "slow", "args": {"seconds": 0.3}}, "context": {"n": i}})
    wire.send({"type": "ovos.tools.invoke", "data": {"name": "ping"}, "context": {"n": "ping"}})
    for i in [*range(40), "ping"]:
        wire.wait(lambda f: context_key(f, "n") == i)
    order = [context_key(f, "n") for f in wire.heard]
    return [{"type": "order", "data": {"answers": len(order), "ping_first": order[0] == "ping"}, "context": {}}]


def ask_deep(wire):
    """Is the service still there after a frame that nests deeper than any Python parses?"""
    wire.heard.clear()
    wire.send('{"type": "someone.elses.topic", "data": {"x": %s}, "context": {}}' % ("[" * 100_000 + "]" * 100_000))
    try:
        wire.fence(deadline=3)
        return [{"type": "still there", "data": {}, "context": {}}]
    except TimeoutError:
        return []


def tidy(frames):
    def plain(frame):
        context = {k: v for k, v in (frame.get("context") or {}).items() if k != "n"}
        return {"type": frame["type"], "data": plain_data(frame.get("data")), "context": context}
    return sorted(map(plain, frames), key=lambda f: (f["type"], str(f["data"].get("toolbox_id")), text_of(f)))


def plain_data(data):
    data = dict(data or {})
    if isinstance(data.get("tools"), list):
        tools = [plain_tool(t) for t in data["tools"] if t.get("name") not in ONLY_OURS]
        if "total_tools" in data:
            data["total_tools"] -= len(data["tools"]) - len(tools)
        data["tools"] = sorted(tools, key=text_of)
    if "argument_schema" in data:
        data = plain_tool(data)
    if "loaded" in data:
        data["loaded"] = sorted(data["loaded"])
    return data


def plain_tool(tool):
    out = {**tool, "argument_schema": plain_schema(tool["argument_schema"]), "output_schema": plain_schema(tool["output_schema"])}
    out["description"] = "<text>" if isinstance(tool["description"], str) and tool["description"] else tool["description"]
    return out


def plain_schema(schema):
    out = {k: v for k, v in schema.items() if k not in ANNOTATIONS}
    if isinstance(out.get("properties"), dict):
        out["properties"] = {name: plain_schema(s) for name, s in out["properties"].items()}
    if isinstance(out.get("required"), list):
        out["required"] = sorted(out["required"])
    return out


def text_of(value):
    """Equal texts mean equal JSON; 2 and 2.0 differ, and so do 1 and true."""
    return json.dumps(value, sort_keys=True)


# ---- comparing

def explain(reference, ours, allowed):
    complaints, fired = [], set()
    for difference in differences(reference, ours):
        rules = [r for r in allowed if r.allows(difference)]
        fired.update(r.name for r in rules)
        if len(rules) != 1:
            why = "no rule allows" if not rules else "several rules allow: " + ", ".join(r.name for r in rules)
            complaints.append(f"{why}\n    {difference}")
    complaints += [f"rule '{r.name}' never fired" for r in allowed if r.name not in fired]
    return complaints


def differences(reference, ours):
    for name in [*reference, *(n for n in ours if n not in reference)]:
        theirs, mine = reference.get(name, []), ours.get(name, [])
        if len(theirs) != len(mine):
            yield Difference(name, "answers", theirs, mine)
            continue
        for a, b in zip(theirs, mine):
            if a["type"] != b["type"]:
                yield Difference(name, "type", a["type"], b["type"])
            for part in ["data", "context"]:
                for key in sorted({*a[part], *b[part]}):
                    x, y = a[part].get(key, ABSENT), b[part].get(key, ABSENT)
                    if text_of(x) != text_of(y):
                        yield Difference(name, f"{part}.{key}", x, y)


def check_saved(path, answers, update):
    """Compares the reference's answers with the saved ones, but for its own full default session."""
    answers = {name: [short(f) for f in frames] for name, frames in answers.items()}
    if update:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(answers, file, indent=1, sort_keys=True, ensure_ascii=True)
            file.write("\n")
        return []
    with open(path, encoding="utf-8") as file:
        saved = json.load(file)
    return [f"the reference's answer is not the one in {path}; if its release changed on purpose, run with "
            f"UPDATE_REFERENCE=1\n    {d}" for d in differences(saved, answers)]


def short(frame):
    session = frame["context"].get("session")
    if isinstance(session, dict) and session.get("session_id") == "default" and len(session) > 3:
        frame = {**frame, "context": {**frame["context"], "session": "<the reference's own default session>"}}
    frame = json.loads(json.dumps(frame), parse_int=short_number)
    if "unhashable type" in str(frame["data"].get("error")):
        # Python 3.14 says this in other words.
        frame["data"]["error"] = "TypeError: unhashable type"
    return frame


def short_number(digits):
    return int(digits) if len(digits) < 1000 else f"<integer of {len(digits)} digits>"


if __name__ == "__main__":
    sys.set_int_max_str_digits(0)
    main()
