"""One end of a connection, for a loop that never waits for one."""

from __future__ import annotations

import socket
from typing import Iterator

from . import frames


class End:
    """A socket that is never waited for: what cannot be sent now is kept."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.ended = False
        self.waiting = bytearray()
        self._splitter = frames.Splitter(frames.MAX_DATA)
        connection.setblocking(False)

    def send(self, frame: bytes) -> None:
        """Sends a frame, now or by a later `flush`."""
        self.waiting += frame
        self.flush()

    def send_json(self, text: bytes) -> None:
        """Sends the JSON of a frame."""
        self.send(len(text).to_bytes(4, "little") + text)

    def flush(self) -> None:
        """Sends what waits, as far as the other side takes it."""
        try:
            while self.waiting and not self.ended:
                sent = self.connection.send(self.waiting)
                del self.waiting[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self.waiting.clear()

    def read(self) -> Iterator[bytes]:
        """The JSON of the frames that are there now."""
        while not self.ended:
            try:
                data = self.connection.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.ended = True
                return
            yield from self._splitter.feed(data)
