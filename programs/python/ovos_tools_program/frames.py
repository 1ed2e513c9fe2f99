"""Frames of docs/protocol.md: a length of four bytes, then one JSON object whose first key names it."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any, Dict, Iterator, NamedTuple, Optional

#: The version of the protocol.
PROTOCOL = 2
#: The longest JSON of a frame on the data lane, in bytes.
MAX_DATA = 64 << 20
#: The longest JSON of a frame on the control lane, in bytes.
MAX_CONTROL = 1 << 20

_LENGTH = struct.Struct("<I")


class FrameError(Exception):
    """The other side broke the rules of frames. There is no way to find the next frame."""


class Frame(NamedTuple):
    """An order or a notice."""

    name: str
    body: Any
    #: The toolbox that it concerns, where a program has several.
    toolbox: Optional[str]


def to_json(value: Any) -> bytes:
    """Writes JSON as the protocol wants it.

    Raises ValueError for NaN and infinities, TypeError for what has no JSON, and UnicodeEncodeError for a text that is not
    UTF-8 (a lone surrogate).
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")


def encode(lane: str, name: str, body: Any = None, toolbox: Optional[str] = None) -> bytes:
    """Makes one frame. `lane` is `order` or `notice`; `toolbox` is named where a program has several."""
    return encode_raw(lane, name, to_json(body), toolbox)


def encode_raw(lane: str, name: str, body: bytes, toolbox: Optional[str] = None) -> bytes:
    """Makes one frame of a body that is JSON already."""
    head: Dict[str, str] = {lane: name}
    if toolbox is not None:
        head["toolbox"] = toolbox
    text = b'%s,"body":%s}' % (to_json(head)[:-1], body)
    return _LENGTH.pack(len(text)) + text


def decode(text: bytes, lane: str) -> Frame:
    """Reads the JSON of a frame."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a frame is not JSON: {error}") from None
    if not isinstance(value, dict) or next(iter(value), None) != lane or not isinstance(value[lane], str):
        raise FrameError(f"a frame is not an object whose first key is `{lane}`")
    return Frame(value[lane], value.get("body"), value.get("toolbox"))


def _exactly(connection: socket.socket, count: int) -> Optional[bytes]:
    """Reads `count` bytes; None if the connection ended before the first of them."""
    data = bytearray(count)
    view = memoryview(data)
    done = 0
    while done < count:
        read = connection.recv_into(view[done:])
        if read == 0:
            if done == 0:
                return None
            raise FrameError("the connection ended inside a frame")
        done += read
    return bytes(data)


def read_frame(connection: socket.socket, limit: int) -> Optional[bytes]:
    """Reads the JSON of the next frame; None at the end of the connection."""
    head = _exactly(connection, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > limit:
        raise FrameError(f"a frame of {length} bytes came; at most {limit} are allowed")
    body = _exactly(connection, length)
    if body is None and length > 0:
        raise FrameError("the connection ended inside a frame")
    return body or b""


def read_all(connection: socket.socket, lane: str, limit: int) -> Iterator[Frame]:
    """Reads frames until the connection ends."""
    while True:
        text = read_frame(connection, limit)
        if text is None:
            return
        yield decode(text, lane)


class Splitter:
    """Finds the frames in bytes that come in pieces, without reading their JSON. For a loop that never blocks."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Takes more bytes, and yields the JSON of each frame that is now complete."""
        self._bytes += data
        while len(self._bytes) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._bytes)
            if length > self._limit:
                raise FrameError(f"a frame of {length} bytes came; at most {self._limit} are allowed")
            end = _LENGTH.size + length
            if len(self._bytes) < end:
                return
            text = bytes(self._bytes[_LENGTH.size : end])
            del self._bytes[:end]
            yield text
