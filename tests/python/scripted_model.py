"""A model that says what a test wrote for it: an OpenAI-compatible server.

A turn is a text, or tool calls `[(name, arguments)]`, or a function from the request to either. The persona that thinks with it
is that of the package's README.
"""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

README = Path(__file__).parents[2] / "python/ovos-tools-toolbox/README.md"
LOOP = "ovos-native-toolcall-loop"


class Model:
    def __init__(self):
        self.turns = []
        self.requests = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                body = json.dumps({"choices": [{"index": 0, "message": model.answer(request)}]}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}/v1"
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def script(self, *turns):
        """What it says from now on."""
        self.turns = list(turns)
        self.requests.clear()

    def answer(self, request):
        self.requests.append(request)
        turn = self.turns.pop(0) if self.turns else "I was not told what to say."
        turn = turn(request) if callable(turn) else turn
        if isinstance(turn, str):
            return {"role": "assistant", "content": turn}
        calls = [{"id": f"call-{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
                 for number, (name, arguments) in enumerate(turn)]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    def persona(self):
        """The README's persona, with this model."""
        persona = of_readme("handlers")
        persona[LOOP]["ovos-chat-openai-plugin"]["api_url"] = self.url
        return persona


def of_readme(key):
    """The JSON of the README that has this key."""
    blocks = README.read_text().split("```json\n")[1:]
    blocks = [json.loads(block.split("```")[0]) for block in blocks]
    return next(block for block in blocks if key in block)


def heard(request):
    """What the model has heard last: the result of a tool, where it called one."""
    return request["messages"][-1]["content"]


def offered(request):
    """The names of the tools that the model may call."""
    return [tool["function"]["name"] for tool in request.get("tools", [])]
