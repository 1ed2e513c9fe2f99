"""A server of the old era with a URL that does one thing at a time: it answers nothing while a call runs.

    busy.py PORT
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

LONG = {"name": "long", "description": "Takes so many seconds.",
        "inputSchema": {"type": "object", "properties": {"seconds": {"type": "number"}}}}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        result = self.answer(message.get("method"), message.get("params") or {})
        if "id" not in message:
            self.send_response(202)
            self.end_headers()
            return
        answer = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_response(405)
        self.end_headers()

    def answer(self, method, params):
        print(method, flush=True)
        if method == "initialize":
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                    "serverInfo": {"name": "busy", "version": "1"}}
        if method == "tools/list":
            return {"tools": [LONG]}
        if method == "tools/call":
            time.sleep(params["arguments"]["seconds"])
            return {"content": [{"type": "text", "text": "done"}]}
        return None

    def log_message(self, *_):
        pass


HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
