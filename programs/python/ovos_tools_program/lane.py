"""One socket: a thread writes what waits for it, so that no other thread waits for the service to read."""

from __future__ import annotations

import collections
import socket
import threading
from typing import Deque

#: Bytes that may wait for the socket before progress, log and events are dropped rather than queued.
DROP_ABOVE = 1 << 20


class Lane:
    """The writing side of a socket. Reading is the business of the thread that owns the lane."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self.connection = connection
        self._waiting: Deque[bytes] = collections.deque()
        self._bytes = 0
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._closed = False
        self._writing = False
        self._thread = threading.Thread(target=self._write, name=f"write-{name}", daemon=True)
        self._thread.start()

    def send(self, frame: bytes) -> None:
        """Queues a frame that must arrive. Never blocks."""
        with self._lock:
            if not self._closed:
                self._queue(frame)

    def send_or_drop(self, frame: bytes) -> bool:
        """Queues a frame that may be lost; False if it was dropped because too much waits."""
        with self._lock:
            if self._closed or self._bytes > DROP_ABOVE:
                return False
            self._queue(frame)
            return True

    def _queue(self, frame: bytes) -> None:
        """Writes as much as the socket takes at once; the thread writes the rest. Under the lock."""
        if not (self._waiting or self._writing):
            try:
                sent = self.connection.send(frame, socket.MSG_DONTWAIT)
            except OSError:
                sent = 0
            if sent == len(frame):
                return
            frame = frame[sent:]
        self._waiting.append(frame)
        self._bytes += len(frame)
        self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Waits until everything is written; False if that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: self._closed or not (self._waiting or self._writing), seconds)

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                frame = self._waiting.popleft()
                self._writing = True
            try:
                self.connection.sendall(frame)
            except OSError:
                # The service is gone; the reading thread notices it as well and ends the program.
                with self._changed:
                    self._closed = True
                    self._waiting.clear()
                    self._writing = False
                    self._changed.notify_all()
                return
            with self._changed:
                self._bytes -= len(frame)
                self._writing = False
                self._changed.notify_all()
