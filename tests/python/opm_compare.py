"""Asks the published service and ours the same of every published OPM toolbox, and compares the answers.

    opm_compare.py THEIRS OURS FOLDER

THEIRS and OURS are the addresses of their buses; FOLDER has the folders `theirs` and `ours`, which their file tools may use.
DIFFERENCES is the whole list of what may differ; anything else fails, and so does an entry of the list that is not met.
"""
import json
import sys

from wire import Wire

#: Toolboxes, and how many tools each has without further packages.
TOOLBOXES = {
    "ovos-clock-tools": 1, "ovos-filesystem-tools": 5, "ovos-math-tools": 4, "ovos-shell-tools": 1,
    "ovos-web-search-tools": 1, "ovos-skill-md-toolbox": 0, "ovos-mcp-toolbox": 0, "ovos-utcp-toolbox": 0,
    "ovos-wikipedia-tools": 1, "ovos-ddg-tools": 3, "ovos-wolfram-alpha-tools": 1, "ovos-wordnet-tools": 2,
}
#: One with tools that fail in each way; programs/python/tests/samples.
SAMPLES = "sample-tools"
#: Tool, arguments. Of those marked `keys`, whose answers depend on a network or on the time, only the shape is compared.
CALLS = [
    ("get_current_datetime", {}, "keys"),
    ("evaluate_expression", {"expression": "2 ** 100"}, ""),
    ("evaluate_expression", {"expression": "sqrt(2) * pi"}, ""),
    ("evaluate_expression", {"expression": "1 / 0"}, ""),
    ("unit_convert", {"value": "3", "from_unit": "km", "to_unit": "m"}, ""),
    ("unit_convert", {"value": 3, "from_unit": "km", "to_unit": "kg"}, ""),
    ("statistics_summary", {"numbers": [1, 2, 3.5]}, ""),
    ("statistics_summary", {"numbers": []}, ""),
    ("solve_equation", {"equation": "x + 2 = 5"}, ""),
    ("solve_equation", {"equation": "x + 2 = 5", "unknown_argument": 1}, ""),
    ("write_file", {"path": "b.txt", "content": "é"}, ""),
    ("read_file", {"path": "b.txt"}, ""),
    ("read_file", {"path": "../secret"}, ""),
    ("read_file", {"path": "absent"}, ""),
    ("list_directory", {"path": "."}, ""),
    ("search_in_files", {"pattern": "two", "path": "."}, ""),
    ("find_files", {"pattern": "*.txt", "path": "."}, ""),
    ("run_command", {"command": "echo hello"}, ""),
    ("run_command", {"command": "exit 3"}, ""),
    ("web_search", {"query": "tree"}, "keys"),
    ("search_wikipedia", {"query": "tree"}, "keys"),
    ("search_duckduckgo", {"query": "tree"}, "keys"),
    ("duckduckgo_infobox", {"query": "tree"}, "keys"),
    ("duckduckgo_image", {"query": "tree"}, "keys"),
    ("search_wolfram_alpha", {"query": "1 + 1"}, "keys"),
    ("define_word", {"word": "tree"}, ""),
    ("word_relations", {"word": "tree"}, ""),
    ("add", {"a": "1", "b": 2.0}, ""),
    ("add", {"a": 10 ** 30}, ""),
    ("add", {"a": "one"}, ""),
    ("add", {"a": 1.5}, ""),
    ("unset", {}, ""),
    ("unset", {"text": "moon"}, ""),
    ("unset", {"text": None}, ""),
    ("split", {"words": "a,b"}, ""),
    ("split", {"words": ["a", "b"]}, ""),
    ("split", {"words": 5}, ""),
    ("named", {"unit": "km"}, ""),
    ("named", {"fromUnit": "km"}, ""),
    ("named", {}, ""),
    ("silent", {}, ""),
    ("raises", {"text": "moon"}, ""),
    ("bad_output", {}, ""),
    ("coroutine", {}, ""),
    ("wrong_type", {}, ""),
    ("nan", {}, ""),
    ("absent", {}, ""),
]


def reason_follows(theirs, ours):
    return "error" in theirs and str(ours.get("error")).startswith(theirs["error"].rstrip(".") + ": ")


def has_the_id(theirs, ours):
    return isinstance(theirs, list) and theirs == [
        {key: value for key, value in one.items() if key != "toolbox_id"} for one in ours if isinstance(one, dict)
    ]


def same_in_another_order(theirs, ours):
    return isinstance(theirs, list) and sorted(theirs, key=str) == sorted(ours, key=str)


#: What may differ: name, whether it explains a difference, why it is as it is.
DIFFERENCES = [
    (
        "the reason follows the error", reason_follows,
        "the published text says which tool failed, and loses which argument and why; it stays, and the reason comes after `: `",
    ),
    (
        "toolbox_id in every tool of `discover`", has_the_id,
        "OPM writes it from version 3 on, and the specification asks for it; the plugins of some packages hold OPM below 3",
    ),
    (
        "order of toolboxes", same_in_another_order,
        "ours are sorted by toolbox id, theirs by package and entry point; no client relies on an order that depends on packages",
    ),
]


def main():
    theirs, ours, folder = sys.argv[1:]
    sides = {"theirs": Wire(theirs), "ours": Wire(ours)}
    met, complaints, rows = set(), [], 0

    def compare(what, answers):
        nonlocal rows
        rows += 1
        if answers["theirs"] == answers["ours"]:
            return
        for name, explains, _ in DIFFERENCES:
            if explains(answers["theirs"], answers["ours"]):
                met.add(name)
                return
        complaints.append(f"{what}\n    theirs {answers['theirs']}\n    ours   {answers['ours']}")

    def ask(topic, data, keep=lambda side, answer: answer, deadline=60):
        return {side: keep(side, wire.ask(topic, data, deadline)) for side, wire in sides.items()}

    # What there is.
    wanted = {*TOOLBOXES, SAMPLES}
    listed = ask("ovos.tools.list", {}, lambda _, answer: [one for one in answer["tools"] if one["toolbox_id"] in wanted])
    tools = {side: {(one["toolbox_id"], one["name"]): one for one in answer} for side, answer in listed.items()}
    compare("the order of the list", {side: [one["name"] for one in answer] for side, answer in listed.items()})
    for name in sorted(tools["theirs"].keys() | tools["ours"].keys()):
        compare(f"list {name}", {side: of.get(name) for side, of in tools.items()})
    count = {box: sum(id_ == box for id_, _ in tools["ours"]) for box in TOOLBOXES}
    compare("tools of each toolbox", {"theirs": TOOLBOXES, "ours": count})
    loaded = ask("ovos.tools.reload", {}, lambda _, answer: sorted(wanted & set(answer["loaded"])))
    compare("loaded", loaded)

    # Each toolbox says what it has.
    for wire in sides.values():
        wire.send({"type": "ovos.persona.tools.discover", "data": {}, "context": {"mark": "discover"}})
    for box in TOOLBOXES:
        def is_of_box(one, box=box):
            return one["type"] == "ovos.persona.tools.discover.response" and one["data"].get("toolbox_id") == box

        found = {side: wire.wait(is_of_box, 60)["data"]["tools"] for side, wire in sides.items()}
        compare(f"discover {box}", found)

    def shown(side, answer):
        """Without the folder, which differs."""
        return json.loads(json.dumps(answer).replace(f"{folder}/{side}", "FOLDER"))

    def keys(_, answer):
        result = answer.get("result")
        return {**answer, "result": sorted(result)} if isinstance(result, dict) else {
            **answer, "error": str(answer.get("error")).split(":")[0]
        }

    for tool, args, how in CALLS:
        keep = keys if how == "keys" else shown
        compare(f"invoke {tool} {args}", ask("ovos.tools.invoke", {"name": tool, "args": args}, keep))
    # Every tool: arguments that are none, are left out, are of a wrong type; and as its toolbox is asked directly.
    for (box, tool), entry in tools["theirs"].items():
        compare(f"get {tool}", ask("ovos.tools.get", {"name": tool}))
        if box == SAMPLES:
            continue
        for args in ("text", 5, [1]):
            compare(f"invoke {tool} {args!r}", ask("ovos.tools.invoke", {"name": tool, "args": args}))
        if "required" in entry["argument_schema"]:
            compare(f"invoke {tool} without arguments", ask("ovos.tools.invoke", {"name": tool}))
            wrong = {name: {"an": "object"} for name in entry["argument_schema"]["required"]}
            compare(f"invoke {tool} {wrong}", ask("ovos.tools.invoke", {"name": tool, "args": wrong}))
            compare(f"call {tool} {wrong}", ask(f"ovos.persona.tools.{box}.call", {"name": tool, "kwargs": wrong}))
        compare(f"call absent of {box}", ask(f"ovos.persona.tools.{box}.call", {"name": "absent", "kwargs": {}}))

    complaints += [f"`{name}` is listed as a difference, and there is none" for name, _, _ in DIFFERENCES if name not in met]
    print(f"{rows} comparisons, {len(complaints)} complaints")
    for complaint in complaints[:40]:
        print("-", complaint)
    sys.exit(bool(complaints))


main()
