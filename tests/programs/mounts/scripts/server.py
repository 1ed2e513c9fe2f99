"""A small MCP server of the legacy era on standard input and output, which misbehaves as its arguments say.

    server.py TRACE [WORD...]

It writes what happens to it to the file TRACE. The words:

    hangs          never answers anything
    hangs_later    the same from its second start on
    hangs_first    the same at its first start only
    freezes        its first process never answers again from its first call on
    dies           says why on stderr and ends at once
    junk           writes lines that are no JSON between its answers
    silent         does not answer requests that it does not know
    broken_tool    lists a tool without a schema, and one without a name
    crowded        lists more tools than are taken
    collides       lists two tools whose names become one
    odd_schemas    lists tools whose schemas are good elsewhere
    pages          lists a tool a page, without an end
    reads          has a tool that reads a file
    named:NAME     has a tool of this name
    storm          says a thousand times a second that its tools have changed
    one_at_a_time  answers nothing while a call runs, and says before each that its tools have changed
    owes           answers no list of tools after `renew`
    stays          ignores the end of its input and SIGTERM
    flushes        ignores the end of its input, and tells of SIGTERM before it ends
    launcher       starts itself without this word, and waits; as npx and uvx do
    grandchild     starts a process of a session of its own, which would live on
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

TRACE, WORDS = sys.argv[1], sys.argv[2:]
NAMED = [word.partition(":")[2] for word in WORDS if word.startswith("named:")]
TOKEN = os.environ.get("TOKEN", "")
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
lock = threading.Lock()
renewed = threading.Event()
cancelled = {}


def trace(line):
    with open(TRACE, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def say(message):
    text = json.dumps({"jsonrpc": "2.0", **message})
    with lock:
        if "junk" in WORDS:
            sys.stdout.write("this is no JSON: {\n\n")
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def tool(name, properties=None, **more):
    return {"name": name, "description": f"The tool {name}.{TOKEN}",
            "inputSchema": {"type": "object", "properties": properties or {}}, **more}


def tools():
    count = {"type": "integer"}
    listed = [
        tool("echo", {"text": {"type": "string"}}, annotations={"readOnlyHint": True}),
        tool("add", {"a": count, "b": count}, outputSchema={
            "type": "object", "properties": {"sum": count}, "required": ["sum"]}),
        tool("slow", {"steps": count}),
        tool("picture"),
        tool("fail"),
        tool("refuse"),
        tool("die"),
        tool("environment"),
        tool("renew"),
        tool("ask"),
    ]
    if renewed.is_set():
        listed.append(tool("new"))
    if "broken_tool" in WORDS:
        listed[1:1] = [{"name": "broken"}, {"inputSchema": {"type": "object"}}]
    if "crowded" in WORDS:
        listed += [tool(f"t{number}") for number in range(1000)]
    if "collides" in WORDS:
        listed += [tool("two.parts"), tool("two/parts")]
    if "odd_schemas" in WORDS:
        listed += [tool(name, properties) for name, properties in ODD.items()]
    listed += [tool(name) for name in NAMED]
    if "reads" in WORDS:
        listed.append(tool("read", {"path": {"type": "string"}}))
    return listed


# Of the tools of well-known servers, in short.
ODD = {
    "null_default": {"limit": {"type": "integer", "default": None}},
    "look_ahead": {"host": {"type": "string", "pattern": "^(?=.{1,253}\\.?$)[a-z0-9.-]+$"}},
    "anchor": {"at": {"$ref": "#place"}, "to": {"$anchor": "place", "type": "string"}},
    "inner_id": {"at": {"$id": "https://example.org/place", "type": "string"}},
}


def text(said, **more):
    return {"content": [{"type": "text", "text": said}], **more}


def call(number, params):
    name, args = params["name"], params.get("arguments") or {}
    trace(f"call {name}")
    if name == "echo":
        result = text(args.get("text", ""))
    elif name == "add":
        result = text("", structuredContent={"sum": args["a"] + args["b"]})
    elif name == "slow":
        result = slow(number, args.get("steps", 3), params.get("_meta", {}).get("progressToken"))
        if result is None:
            return
    elif name == "picture":
        result = {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}
        if TOKEN:
            link = {"type": "resource_link", "uri": f"https://example.org/?key={TOKEN}", "name": f"of {TOKEN}"}
            result["content"].append(link)
    elif name in ODD or name in NAMED:
        result = text(json.dumps(args))
    elif name == "read":
        try:
            with open(args["path"], encoding="utf-8") as file:
                result = text(file.read())
        except OSError as error:
            result = text(str(error), isError=True)
    elif name == "fail":
        result = text("there is no such city" + TOKEN, isError=True)
    elif name == "refuse":
        say({"id": number, "error": {"code": -32602, "message": "not with these arguments",
                                          "data": {"token": TOKEN}}})
        return
    elif name == "die":
        print("it dies as it was told", TOKEN, file=sys.stderr, flush=True)
        os._exit(3)
    elif name == "environment":
        result = text("", structuredContent=dict(os.environ))
    elif name == "renew":
        renewed.set()
        say({"method": "notifications/tools/list_changed"})
        result = text("renewed")
    elif name == "ask":
        say({"id": "q1", "method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}})
        result = text("asked")
    else:
        say({"id": number, "error": {"code": -32602, "message": f"unknown tool {name}"}})
        return
    say({"id": number, "result": result})


def slow(number, steps, token):
    event = cancelled[number] = threading.Event()
    for step in range(steps):
        if token is not None:
            say({"method": "notifications/progress", "params": {
                "progressToken": token, "progress": step + 1, "total": steps, "message": f"step {step + 1}{TOKEN}"}})
        if event.wait(0.1):
            trace("cancelled")
            return None
    return text("done")


def storm():
    while True:
        say({"method": "notifications/tools/list_changed"})
        time.sleep(0.001)


def answer(message):
    number, method = message.get("id"), message.get("method")
    if method == "initialize":
        trace("initialize " + json.dumps(message["params"]["capabilities"]))
        say({"id": number, "result": {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "fake", "version": "1"}}})
        if "storm" in WORDS:
            threading.Thread(target=storm, daemon=True).start()
    elif method == "tools/list":
        # In two pages.
        trace("list")
        if "owes" in WORDS and renewed.is_set():
            return trace("owes")
        listed, second = tools(), (message.get("params") or {}).get("cursor")
        if "pages" in WORDS:
            number_of_page = int(second or 0)
            return say({"id": number, "result": {
                "tools": [tool(f"t{number_of_page}")], "nextCursor": str(number_of_page + 1)}})
        page = {"tools": listed[3:]} if second else {"tools": listed[:3], "nextCursor": "more"}
        say({"id": number, "result": page})
    elif method == "tools/call":
        if "freezes" in WORDS and starts() == 1:
            trace("it is frozen")
            time.sleep(600)
        if "one_at_a_time" in WORDS:
            say({"method": "notifications/tools/list_changed"})
            return call(number, message["params"])
        threading.Thread(target=call, args=(number, message["params"]), daemon=True).start()
    elif method == "notifications/cancelled":
        event = cancelled.get(message["params"].get("requestId"))
        if event is not None:
            event.set()
    elif method is None:
        trace("answer " + json.dumps(message.get("error") or message.get("result")))
    elif number is not None:
        trace(f"unknown {method}")
        if "silent" not in WORDS:
            say({"id": number, "error": {"code": -32601, "message": f"no method {method}"}})


def starts():
    with open(TRACE, encoding="utf-8") as file:
        return file.read().count("pid ")


def flush(*_):
    trace("flushed")
    sys.exit()


def main():
    if "launcher" in WORDS:
        words = [word for word in WORDS if word != "launcher"]
        server = subprocess.Popen([sys.executable, os.path.abspath(__file__), TRACE, *words])
        trace(f"pid {os.getpid()}")
        sys.exit(server.wait())
    trace(f"pid {os.getpid()}")
    trace(" ".join(["started with", TOKEN, *WORDS]))
    print("its token is", os.environ.get("TOKEN", "not set"), file=sys.stderr, flush=True)
    if "grandchild" in WORDS:
        child = subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        trace(f"pid {child.pid}")
    if "dies" in WORDS:
        print("the licence has run out", file=sys.stderr, flush=True)
        sys.exit(4)
    if "stays" in WORDS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "flushes" in WORDS:
        signal.signal(signal.SIGTERM, flush)
    again = starts() > 1
    if "hangs" in WORDS or ("hangs_later" in WORDS and again) or ("hangs_first" in WORDS and not again):
        time.sleep(600)
    for line in sys.stdin:
        answer(json.loads(line))
    trace("eof")
    if "stays" in WORDS or "flushes" in WORDS:
        time.sleep(600)


main()
