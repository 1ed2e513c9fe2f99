"""Judges the codec by the published rosbags: rosbags_codec.py DISTRIBUTION [SEED].

Prints a line of JSON for each random value of each message of the distribution: its type, the whole text of its
definitions, the value as JSON, and its bytes in both orders as hexadecimal digits. Values that the definition does not
allow are not made: sequences keep their bounds, and single bytes the half that rosbags, which has them signed, can write.
"""

import base64
import json
import math
import random
import struct
import sys

import numpy
from rosbags.typesys import Stores, get_typestore
from rosbags.interfaces import Nodetype

store = get_typestore(Stores[f"ROS2_{sys.argv[1].upper()}"])
random.seed(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
RANGES = {
    "bool": (0, 1), "octet": (0, 127), "byte": (0, 127), "char": (0, 127), "int8": (-128, 127), "uint8": (0, 255),
    "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1), "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1), "int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1),
}
NAMES = {"float32": numpy.float32, "float64": numpy.float64, "octet": numpy.uint8, "byte": numpy.uint8, "char": numpy.uint8}


def name_of(number):
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"


def primitive(kind, limit):
    """A value for rosbags and the same for JSON."""
    if kind in ("string", "wstring"):
        length = random.randint(0, min(limit or 12, 12))
        text = "".join(random.choice("abc xyz09_ä€" if not limit else "abcxyz") for _ in range(length))
        return text, text
    if kind in ("float32", "float64"):
        number = random.choice([0.0, -1.5, 0.1, math.inf, -math.inf, math.nan, random.uniform(-1e6, 1e6)])
        if kind == "float32":
            number = struct.unpack("f", struct.pack("f", number))[0]
        shown = number if math.isfinite(number) else name_of(number)
        return number, shown
    number = random.randint(*RANGES[kind])
    return (bool(number), bool(number)) if kind == "bool" else (number, number)


def element(node):
    kind, rest = node
    if kind == Nodetype.BASE:
        return primitive(*rest)
    return message(rest)


def field(node):
    kind, rest = node
    if kind in (Nodetype.BASE, Nodetype.NAME):
        return element(node)
    inner, count = rest
    length = count if kind == Nodetype.ARRAY else random.randint(0, min(count or 4, 4))
    items = [element(inner) for _ in range(length)]
    ours, shown = [item[0] for item in items], [item[1] for item in items]
    if inner[0] == Nodetype.BASE and inner[1][0] not in ("string", "wstring"):
        base = inner[1][0]
        ours = numpy.array(ours, dtype=NAMES.get(base) or getattr(numpy, base if base != "bool" else "bool_"))
        if base in ("uint8", "octet", "byte", "char"):
            shown = base64.b64encode(bytes(shown)).decode()
    return ours, shown


def message(name):
    _, fields = store.fielddefs[name]
    values = {key: field(node) for key, node in fields if key != "structure_needs_at_least_one_member"}
    shown = {key: value[1] for key, value in values.items()}
    given = {key: value[0] for key, value in values.items()}
    kind = store.types[name]
    if "structure_needs_at_least_one_member" in kind.__dataclass_fields__:
        given["structure_needs_at_least_one_member"] = 0
    return kind(**given), shown


for name in sorted(store.fielddefs):
    text = store.generate_msgdef(name, ros_version=2)[0]
    for _ in range(10):
        value, shown = message(name)
        little, big = (bytes(store.serialize_cdr(value, name, little_endian=order)) for order in (True, False))
        print(json.dumps({"name": name, "text": text, "value": shown, "little": little[4:].hex(), "big": big[4:].hex()}))
