"""The requests of the differential test: one list, sent to the reference and to ovos-tools.

`Row.frame` is a message, or bare text or bytes for what no client library would send. A row whose context
can carry a key of ours gets one (`n`), and its answers are recognised by it; any other row is sent alone.
"""
from dataclasses import dataclass
from typing import Any

BIG = 10 ** 30


@dataclass
class Row:
    id: str
    frame: Any
    alone: bool = False


def rows():
    yield from listing()
    yield from names()
    yield from arguments()
    yield from other_tools()
    yield from owners()
    yield from toolbox_topics()
    yield from routing()
    yield from sessions()
    yield from envelopes()
    yield from malformed()
    yield from silent_topics()
    yield from status()


def after_reload():
    """What is asked when the tools were reloaded, twice."""
    yield row("reload", "ovos.tools.reload", {})
    yield row("reload/again", "ovos.tools.reload", {"unknown": 1})
    yield row("reloaded/list", "ovos.tools.list", {})
    yield row("reloaded/discover", "ovos.persona.tools.discover", {})
    yield row("reloaded/call", "ovos.persona.tools.call",
              {"toolbox_id": "testbed", "name": "add", "kwargs": {"a": 1, "b": 2}})
    yield row("reloaded/call/predecessor", "ovos.persona.tools.testbed.call",
              {"name": "echo", "kwargs": {"text": "again"}})
    yield row("reloaded/invoke", "ovos.tools.invoke", {"name": "add", "args": {"a": 1, "b": 2}})


def row(name, topic, data, context=None, **keys):
    return Row(name, {"type": topic, "data": data, "context": {} if context is None else context, **keys})


def invoke(case, name, args, **data):
    return row(f"invoke/{case}", "ovos.tools.invoke", {"name": name, "args": args, **data})


def listing():
    for case, data in {"plain": {}, "data is ignored": {"name": "add", "toolbox_id": "nope"}}.items():
        yield row(f"list/{case}", "ovos.tools.list", data)
    for name in ["add", "echo", "ping", "slow", "fail", "bad_output"]:
        yield row(f"get/{name}", "ovos.tools.get", {"name": name})
    yield row("get/extra keys", "ovos.tools.get", {"name": "add", "args": 5, "colour": "red"})


NAMES = [None, "", 0, False, [], {}, 0.0, 5, -1, 1.5, 1e300, BIG, True, " ", "nope", " add", "add ", "Add", "ADD", "add.x",
         "a" * 300, "naïve ☃ 工具 🤖", "'quoted'", '"double"', "back\\slash", "line\nbreak", "{brace}", "%s", "__class__",
         ["add"], {"name": "add"}, [[]], {"a": {"b": 1}}]


def names():
    for i, name in enumerate(NAMES):
        case = f"name {i} {str(name)[:20]!r}"
        yield row(f"get/{case}", "ovos.tools.get", {"name": name})
        yield invoke(case, name, {"a": 1, "b": 2})
        yield row(f"call/{case}", "ovos.persona.tools.call",
                  {"toolbox_id": "testbed", "name": name, "kwargs": {"a": 1, "b": 2}})
    yield row("get/no name", "ovos.tools.get", {})
    yield row("invoke/no name", "ovos.tools.invoke", {})
    yield row("invoke/no name but args", "ovos.tools.invoke", {"args": {"a": 1, "b": 2}})
    yield row("invoke/unknown before args", "ovos.tools.invoke", {"name": "nope", "args": [1]})
    yield row("invoke/missing name before args", "ovos.tools.invoke", {"args": 5})


INTEGERS = [0, 1, -1, 2 ** 53, 2 ** 63 - 1, 2 ** 63, -2 ** 63, 2 ** 64, BIG, -BIG, 10 ** 400,
            "1", " 1 ", "+5", "-5", "-0", "1.0", "1.00", "1.", ".0", "1.5", "abc", "", " ", "0x10", "0b1", "1e3", "1_000", "_1",
            "1__0", "007", "１", "1,000", "1 0", "\t2\n", "--1", str(BIG), "9" * 4300, "9" * 4301, "NaN", "inf", "true",
            True, False, None, [], [1], {}, {"a": 1}, 1.0, 2.0, -3.0, 1.5, 1e20, 2.0 ** 63, 2.0 ** 64, 1e300, -0.0, 1e-9]

TEXTS = ["", "a", "naïve ☃ 工具 🤖", "\u0000", "\u001f\u007f", "line\nbreak\ttab", '"quoted" \\ back', "\u2028\u2029\ufeff", "e\u0301",
         "x" * 100_000, 5, 1.5, BIG, True, None, [], ["a"], {}, {"text": "a"}]

NUMBERS = [0, 0.0, 0.01, -0.0, "0.01", " 0.01 ", "0", "1e-2", "1_0e-3", ".01", "abc", "", None, [], {}, False, 1e-400, "0x0", "0,1"]


def arguments():
    for i, value in enumerate(INTEGERS):
        case = f"integer {i} {str(value)[:20]!r}"
        yield invoke(f"add/{case}", "add", {"a": value, "b": 1})
        yield row(f"call/add/{case}", "ovos.persona.tools.call",
                  {"toolbox_id": "testbed", "name": "add", "kwargs": {"a": 2, "b": value}})
    for i, value in enumerate(TEXTS):
        yield invoke(f"echo/text {i} {str(value)[:20]!r}", "echo", {"text": value})
    for i, value in enumerate(NUMBERS):
        yield invoke(f"slow/number {i} {str(value)[:20]!r}", "slow", {"seconds": value})
    for case, args in {
        "empty": {}, "one": {"a": 1}, "other": {"b": 1}, "misspelt": {"A": 1, "B": 2}, "extra": {"a": 1, "b": 2, "c": 3},
        "extra of any type": {"a": 1, "b": 2, "c": None, "": [], "é": {"x": [1, {"y": 2}]}},
        "both wrong": {"a": "x", "b": None}, "order": {"b": 2, "a": 1},
    }.items():
        yield invoke(f"add/args {case}", "add", args)
    for depth in [10, 60, 100, 120]:
        yield invoke(f"add/nested extra {depth}", "add", {"a": 1, "b": 2, "c": nested(depth)})
    for i, args in enumerate([None, [], [1, 2], "", "a=1", '{"a":1,"b":2}', 5, 0, 1.5, BIG, True, False]):
        for tool in ["add", "ping", "fail"]:
            yield invoke(f"{tool}/args type {i} {args!r}", tool, args)
        yield row(f"call/add/kwargs type {i} {args!r}", "ovos.persona.tools.call",
                  {"toolbox_id": "testbed", "name": "add", "kwargs": args})
    for tool in ["add", "ping", "echo"]:
        yield row(f"invoke/{tool}/no args", "ovos.tools.invoke", {"name": tool})
        yield row(f"call/{tool}/no kwargs", "ovos.persona.tools.call", {"toolbox_id": "testbed", "name": tool})
    yield row("invoke/add/kwargs in place of args", "ovos.tools.invoke", {"name": "add", "kwargs": {"a": 1, "b": 2}})
    yield row("call/add/args in place of kwargs", "ovos.persona.tools.call",
              {"toolbox_id": "testbed", "name": "add", "args": {"a": 1, "b": 2}})
    yield Row("invoke/add/beyond a float", '{"type": "ovos.tools.invoke", "data": {"name": "add", '
              '"args": {"a": 1e400, "b": 1}}, "context": {"n": "%n"}}')
    yield Row("invoke/add/duplicate keys", '{"type": "ovos.tools.invoke", "data": {"name": "add", '
              '"args": {"a": 1, "b": 1, "a": 5}}, "context": {"n": "%n"}}')
    yield Row("invoke/add/escaped ascii", '{"type": "ovos.tools.invoke", "data": {"name": "echo", '
              '"args": {"text": "\\u2603\\ud83e\\udd16\\/"}}, "context": {"n": "%n"}}')


def other_tools():
    for args in [{}, {"extra": 1}]:
        for tool in ["ping", "fail", "bad_output"]:
            yield invoke(f"{tool}/{args}", tool, args)
            yield row(f"call/{tool}/{args}", "ovos.persona.tools.call",
                      {"toolbox_id": "testbed", "name": tool, "kwargs": args})


def owners():
    yield row("get/dup", "ovos.tools.get", {"name": "dup"})
    yield invoke("dup", "dup", {})
    for box in ["testbed", "testbed_dup"]:
        yield row(f"get/dup of {box}", "ovos.tools.get", {"name": "dup", "toolbox_id": box})
        yield invoke(f"dup of {box}", "dup", {}, toolbox_id=box)
        yield invoke(f"alias {box}", f"{box}__dup", {})
        yield row(f"get/alias {box}", "ovos.tools.get", {"name": f"{box}__dup"})
        yield row(f"call/dup of {box}", "ovos.persona.tools.call", {"toolbox_id": box, "name": "dup", "kwargs": {}})
    yield invoke("dup of unknown", "dup", {}, toolbox_id="nope")
    yield invoke("add of testbed", "add", {"a": 1, "b": 2}, toolbox_id="testbed")
    yield invoke("add of testbed_dup", "add", {"a": 1, "b": 2}, toolbox_id="testbed_dup")
    yield row("get/add of unknown", "ovos.tools.get", {"name": "add", "toolbox_id": "nope"})


def toolbox_topics():
    yield row("discover/plain", "ovos.persona.tools.discover", {})
    yield row("discover/data is ignored", "ovos.persona.tools.discover", {"toolbox_id": "nope"})
    good = {"name": "add", "kwargs": {"a": 1, "b": 2}}
    yield row("call/good", "ovos.persona.tools.call", {**good, "toolbox_id": "testbed"})
    yield row("call/not owned", "ovos.persona.tools.call", {**good, "toolbox_id": "testbed_dup"})
    yield row("call/no toolbox_id", "ovos.persona.tools.call", good)
    for i, box in enumerate([None, "", "nope", "Testbed", " testbed", 5, 0, True, [], ["testbed"], {}, {"id": "testbed"}]):
        yield row(f"call/toolbox_id {i} {box!r}", "ovos.persona.tools.call", {**good, "toolbox_id": box})
    for data in [good, {**good, "toolbox_id": "nope"}, {**good, "toolbox_id": None}, {}, {"name": "nope"}, {"name": "fail"},
                 {"name": "dup"}, {"name": "add", "kwargs": [1]}, {"name": "add", "kwargs": {"a": "x", "b": 1}}]:
        yield row(f"predecessor/{data}", "ovos.persona.tools.testbed.call", data)
    yield row("predecessor/testbed_dup", "ovos.persona.tools.testbed_dup.call", {"name": "dup"})
    yield row("predecessor/unknown", "ovos.persona.tools.nope.call", good)
    yield row("call/no name", "ovos.persona.tools.call", {"toolbox_id": "testbed"})
    yield row("call/nothing", "ovos.persona.tools.call", {})


def routing():
    keys = [None, "", "A", ["A"], ["A", "B"], [], ["", "A"], [None], ["", None], 5, 0, True, {}, {"a": 1}, [["A"]]]
    for i, source in enumerate(keys):
        yield row(f"routing/source {i} {source!r}", "ovos.tools.get", {"name": "nope"}, {"source": source})
        yield row(f"routing/destination {i} {source!r}", "ovos.tools.get", {"name": "nope"}, {"destination": source})
        yield row(f"routing/both {i} {source!r}", "ovos.tools.get", {"name": "nope"}, {"source": source, "destination": "Z"})
        yield row(f"routing/back {i} {source!r}", "ovos.tools.get", {"name": "nope"}, {"source": "Z", "destination": source})
    for topic in ["ovos.tools.invoke", "ovos.tools.list", "ovos.persona.tools.discover"]:
        yield row(f"routing/{topic}", topic, {"name": "ping"},
                  {"source": "skill", "destination": ["PHAL", "other"], "ident": 7, "client_name": "é", "a": {"b": [1, None]}})
    yield row("routing/call", "ovos.persona.tools.call", {"toolbox_id": "testbed", "name": "ping"},
              {"source": "skill", "destination": "PHAL"})
    yield row("routing/error", "ovos.tools.invoke", {"name": "fail"}, {"source": "skill", "destination": "PHAL"})


SESSIONS = [{}, None, {"session_id": "kitchen"}, {"session_id": "kitchen", "lang": "pt-PT", "unknown": {"a": [1, BIG, 1.0]}},
            {"session_id": "default"}, {"session_id": "default", "lang": "pt-PT", "unknown": 1}, {"session_id": ""},
            {"session_id": None}, {"lang": "pt-PT"}, {"session_id": 5}, {"session_id": ["default"]}, {"unknown": True},
            {"session_id": "Default"}, {"session_id": "kitchen", "pipeline": [], "active_skills": [["a", 1.5]]}]


def sessions():
    for i, session in enumerate(SESSIONS):
        yield row(f"session/{i} {session!r:.60}", "ovos.tools.get", {"name": "nope"}, {"session": session})
        yield row(f"session/invoke {i} {session!r:.60}", "ovos.tools.invoke", {"name": "ping"},
                  {"session": session, "source": "A", "lang": "de-DE"})
    for i, session in enumerate(["kitchen", 5, [], True, 0, ""]):
        yield row(f"session/refused by the bus {i} {session!r}", "ovos.tools.get", {"name": "nope"}, {"session": session})


def envelopes():
    get = {"type": "ovos.tools.get", "data": {"name": "nope"}}
    invoke_ping = {"type": "ovos.tools.invoke", "data": {"name": "ping"}}
    yield Row("envelope/no context", get, alone=True)
    yield Row("envelope/null context", {**get, "context": None}, alone=True)
    yield Row("envelope/empty context", {**get, "context": {}}, alone=True)
    yield Row("envelope/no data", {"type": "ovos.tools.get", "context": {}})
    yield Row("envelope/null data", {"type": "ovos.tools.get", "data": None, "context": {}})
    yield Row("envelope/list without data", {"type": "ovos.tools.list", "context": {}})
    yield Row("envelope/only a type", {"type": "ovos.tools.list"}, alone=True)
    yield Row("envelope/unknown keys", {**get, "context": {}, "msg_id": 1, "version": [2]})
    yield Row("envelope/unknown keys of invoke", {**invoke_ping, "context": {}, "msg_type": "ovos.tools.list"})
    yield Row("envelope/keys in another order", {"context": {}, "data": {"name": "ping"}, "type": "ovos.tools.invoke"})
    yield Row("envelope/white space", '  \n{ "type" :\t"ovos.tools.get", "data": {"name":"nope"}, "context": {"n": "%n"} }\r\n ')
    yield Row("envelope/escaped type", '{"type": "ovos.tools.\\u0067et", "data": {"name":"nope"}, "context": {"n": "%n"}}')
    yield Row("envelope/type twice", '{"type": "ovos.tools.list", "type": "ovos.tools.get", "data": {"name":"nope"}, '
              '"context": {"n": "%n"}}')


def malformed():
    get = {"type": "ovos.tools.get", "data": {"name": "nope"}, "context": {}}
    for i, data in enumerate([[], [1], "x", 5, True, 0, False, ""]):
        yield Row(f"malformed/data {i} {data!r}", {**get, "data": data})
    for i, context in enumerate([[], [1], "x", 5, True, 0, False, ""]):
        yield Row(f"malformed/context {i} {context!r}", {**get, "context": context}, alone=True)
    for i, kind in enumerate([None, 5, [], {}, True, "", " ", "ovos.tools.get ", " ovos.tools.get", "OVOS.TOOLS.GET", "ovos tools get",
                              "ovos.tools.get\n", "ovos.tools.gét", "ovos/tools/get"]):
        yield Row(f"malformed/type {i} {kind!r}", {**get, "type": kind})
    yield Row("malformed/no type", {"data": {"name": "nope"}, "context": {}})
    for i, text in enumerate(["", " ", "x", "{", "}", '{"type": "ovos.tools.list"', '{"type": "ovos.tools.list"}}',
                              "{'type': 'ovos.tools.list'}", '{"type": "ovos.tools.list",}', "[]", "5", "null", '"s"', "true",
                              '[{"type": "ovos.tools.list"}]', "\ufeff" + '{"type": "ovos.tools.list"}', "\u0000",
                              '{"type": "ovos.tools.list"} {"type": "ovos.tools.list"}']):
        yield Row(f"malformed/text {i} {text[:30]!r}", text, alone=True)
    yield Row("malformed/binary", b"\x00\xff\xfe", alone=True)
    yield Row("malformed/NaN", '{"type": "ovos.tools.invoke", "data": {"name": "slow", "args": {"seconds": NaN}}, '
              '"context": {"n": "%n"}}')
    yield Row("malformed/NaN unused", '{"type": "ovos.tools.invoke", "data": {"name": "ping", "args": {"x": -Infinity}}, '
              '"context": {"n": "%n"}}')
    yield Row("malformed/lone surrogate", '{"type": "ovos.tools.invoke", "data": {"name": "echo", '
              '"args": {"text": "\\ud800"}}, "context": {"n": "%n"}}')
    yield Row("malformed/control character", '{"type": "ovos.tools.get", "data": {"name": "a\nb"}, "context": {"n": "%n"}}')
    yield Row("malformed/leading zero", '{"type": "ovos.tools.invoke", "data": {"name": "add", "args": {"a": 01, "b": 1}}, '
              '"context": {"n": "%n"}}')


def silent_topics():
    for topic in ["ovos.tools", "ovos.tools.", "ovos.tools.lists", "ovos.tools.list.response", "ovos.tools.get.response",
                  "ovos.tools.invoke.response", "ovos.persona.tools", "ovos.persona.tools.discover.response", "speak", "recognizer_loop:utterance", "message", "open", "close", "a:b", "connected"]:
        yield row(f"silent/{topic}", topic, {"name": "ping", "args": {}})
    for topic in ["ovos.stop", "mycroft.stop"]:
        # Alone, because ours ends the calls that run.
        yield Row(f"silent/{topic}", {"type": topic, "data": {}, "context": {}}, alone=True)


def status():
    for name in ["PHAL", "ovos_tools", "skills"]:
        for question in ["is_alive", "is_ready", "all_loaded"]:
            yield row(f"status/mycroft.{name}.{question}", f"mycroft.{name}.{question}", {}, {"source": "A"})


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value
