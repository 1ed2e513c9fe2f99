"""A bus client that shows the bare frames: what the real bus-client hides is what the tests compare.

`Wire` keeps every frame it hears, except the relayed copies of its own, in order of arrival.
"""
import json
import socket
import threading
import time
import uuid

import websocket

DEADLINE = 30.0


class Wire:
    def __init__(self, url):
        self.socket = websocket.create_connection(url, timeout=DEADLINE, enable_multithread=True,
                                                  skip_utf8_validation=True)
        self.socket.settimeout(None)
        self.heard = []
        self.closed = False
        self._own = {}
        self._news = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        try:
            while True:
                kind, text = self.socket.recv_data()
                # Or every round trip waits 44 ms for a delayed ACK: no bus sets TCP_NODELAY.
                self.socket.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                if kind == websocket.ABNF.OPCODE_CLOSE:
                    break
                text = text.decode(errors="replace")
                with self._news:
                    if self._own.get(text, 0):
                        self._own[text] -= 1
                    else:
                        self.heard.append(_parse(text))
                        self._news.notify_all()
        except (websocket.WebSocketException, OSError):
            pass
        with self._news:
            self.closed = True
            self._news.notify_all()

    def send(self, frame):
        """Sends a message (dict), a text as it is (str) or a binary frame (bytes)."""
        if isinstance(frame, bytes):
            self.socket.send_binary(frame)
            return
        text = frame if isinstance(frame, str) else json.dumps(frame, ensure_ascii=False)
        with self._news:
            self._own[text] = self._own.get(text, 0) + 1
        self.socket.send(text)

    def wait(self, found, deadline=DEADLINE):
        """The first heard frame that `found` accepts; raises TimeoutError when none comes."""
        until = time.monotonic() + deadline
        seen = 0
        with self._news:
            while True:
                for frame in self.heard[seen:]:
                    if found(frame):
                        return frame
                seen = len(self.heard)
                left = until - time.monotonic()
                if left <= 0 or self.closed:
                    raise TimeoutError(f"connection closed: {self.closed}; last frames: {self.heard[-3:]}")
                self._news.wait(left)

    def ask(self, topic, data=None, deadline=DEADLINE):
        """Sends one request and returns the data of its answer, told apart by a context key."""
        mark = uuid.uuid4().hex
        self.send({"type": topic, "data": data or {}, "context": {"mark": mark}})
        answer = self.wait(lambda f: f["type"] == topic + ".response" and context_key(f, "mark") == mark, deadline)
        return answer["data"]

    def fence(self, quiet=3, deadline=DEADLINE):
        """Returns when the service has answered later requests, so that what it had to say is here.

        Both answer from several threads, where a later request can overtake an earlier one; so the later ones are
        calls, which go the longest way, and this goes on until `quiet` of them in a row brought nothing else.
        """
        silent, before = 0, -1
        while silent < quiet:
            self.ask("ovos.tools.invoke", {"name": "ping"}, deadline)
            others = sum(context_key(f, "mark") is None for f in self.heard)
            silent = silent + 1 if others == before else 0
            before = others

    def close(self):
        self.socket.close()


def context_key(frame, key):
    context = frame.get("context")
    return context.get(key) if isinstance(context, dict) else None


def _parse(text):
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        frame = None
    return frame if isinstance(frame, dict) and "type" in frame else {"type": None, "text": str(text)[:200]}
