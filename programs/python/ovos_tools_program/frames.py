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
#: Bytes of one read.
READ_SIZE = 1 << 16

_LENGTH = struct.Struct("<I")
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


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
    return _ENCODER.encode(value).encode("utf-8")


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


class Splitter:
    """Finds the frames in bytes that come in pieces, without reading their JSON."""

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

    @property
    def inside(self) -> bool:
        """Whether the last bytes end inside a frame."""
        return bool(self._bytes)


def read_all(connection: socket.socket, lane: str, limit: int) -> Iterator[Frame]:
    """Reads frames until the connection ends."""
    splitter = Splitter(limit)
    while True:
        data = connection.recv(READ_SIZE)
        if not data:
            if splitter.inside:
                raise FrameError("the connection ended inside a frame")
            return
        for text in splitter.feed(data):
            yield decode(text, lane)
