"""Writes what pydantic's lax mode makes of odd inputs: crates/schema/tests/data/pydantic_lax.json, read by crates/schema/tests/schema/coercion.rs.

    python -m venv lax && lax/bin/pip install --pre ovos-plugin-manager==3.1.0a1
    lax/bin/python tests/python/pydantic_lax.py > crates/schema/tests/data/pydantic_lax.json

Inputs are JSON texts and go through json.loads, as a bus message does: 1e3 is a float, -0 is the int 0.
An output of null means "refused"; otherwise it is the text of model_dump(mode="json") of the whole model.
"""

import json
import math
from datetime import datetime
from enum import Enum, IntEnum
from typing import Annotated, Any, Dict, List, Literal, Optional, Set, Tuple, Union

import pydantic
from pydantic import BaseModel, ConfigDict, Field


class Color(str, Enum):
    red = "red"
    green = "green"


class Level(IntEnum):
    low = 1
    high = 2


class Point(BaseModel):
    x: int
    y: float = 0.5
    label: Optional[str] = None


class Pose(BaseModel):
    x: int
    y: int
    z: int = 7


class Named(BaseModel):
    name: str


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    weight: float


class Tree(BaseModel):
    value: int
    children: List["Tree"] = []


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


SCALARS = [
    '"1"', '" 1 "', '"1.0"', '"1.00"', '"1."', '".5"', '"01"', '"001.0"', '"-1"', '"+1"', '"+-1"', '"--1"', '"-"',
    '"+"', '"1_000"', '"1__0"', '"_1"', '"1_"', '"-_1"', '"+_1"', '"1_.0"', '"1._0"', '"0_1"', '"0_0"', '"-01"',
    '"-0_1"', '"_"', '"."', '"0."', '"-.0"', '".0"', '"1e3"', '"1E3"', '"1e"', '"1e400"', '""', '"  "',
    '"\\u0663"', '"0x10"', '"1.5"', '"abc"', '"inf"', '"nan"', '"-inf"', '"Infinity"', '"+inf"', '"NaN"', '"-0"',
    '"-0.0"', '"000"', '"00.0"', '"1\\n"', '"\\t1"', '"\\u00a01"', '"1,0"', '"1 000"', '"true"', '"True"', '"TRUE"',
    '" true"', '"yes"', '"YES"', '"on"', '"off"', '"no"', '"n"', '"t"', '"y"', '"f"', '"N"', '"0"', '"2"', '"red"',
    '"9223372036854775808"', '"-170141183460469231731687303715884105729"', '"9223372036854775808.0"',
    '"1.0000000000000000000001"', "0", "1", "2", "5", "10", "11", "-1", "-0", "0.0", "-0.0", "1.0", "2.0", "1.5",
    "-1.5", "1e3", "1E-3", "1e18", "9.3e18", "-9.3e18", "9223372036854774784.0", "9007199254740993",
    "9223372036854775807", "9223372036854775808", "123456789012345678901234567890", "1e20", "1e300", "true", "false",
    "null", "[]", "[1]", "{}", '{"a": 1}',
]
LISTS = [
    "[]", "[1]", '["1", 2.0, true]', '["x"]', "[[1]]", "[null]", "null", "1", '"1"', '"[1]"', "{}", '{"0": 1}',
    "[1, 1]", '["1", 1, 2]', '["a"]', '["a", "b"]', '[1, "a"]', '["2", "b", true]', "[1, 2]", "[1, 2, 3]", "[1.5]",
    '["1.5", 2]',
]
OBJECTS = [
    "{}", '{"x": 1}', '{"x": "1", "y": "2"}', '{"x": 1.5}', '{"y": 2}', '{"x": 1, "extra": 2}', '{"x": 1, "y": 2, "z": 3}',
    '{"x": 1, "label": null}', '{"x": 1, "label": 5}', '{"name": "n"}', '{"name": "n", "x": 1, "y": 2}', '{"name": 1}',
    '{"kind": "cat"}', '{"kind": "cat", "lives": "3"}', '{"kind": "dog", "weight": "2"}', '{"kind": "dog"}',
    '{"kind": "cow"}', '{"kind": "cat", "weight": 1}', '{"a": 1}', '{"a": "1", "b": 2.0}', '{"a": "x"}', '{"a": null}',
    '{"a": "1", "b": "2"}', '{"value": "1"}', '{"value": 1, "children": [{"value": "2", "children": [{"value": 3.0}]}]}',
    '{"value": 1, "children": [{"value": "x"}]}', '{"value": 1, "children": null}', "null", "[]", "1", '"x"',
    '{"x": true, "y": false}',
]

FIELDS = {
    "int": (int, SCALARS),
    "float": (float, SCALARS),
    "bool": (bool, SCALARS),
    "str": (str, SCALARS),
    "any": (Any, SCALARS),
    "optional_int": (Optional[int], SCALARS),
    "optional_float_default": (Optional[float], SCALARS, 1.5),
    "int_or_str": (Union[int, str], SCALARS),
    "str_or_int": (Union[str, int], SCALARS),
    "int_or_float": (Union[int, float], SCALARS),
    "float_or_int": (Union[float, int], SCALARS),
    "bool_or_int": (Union[bool, int], SCALARS),
    "int_or_bool": (Union[int, bool], SCALARS),
    "float_or_bool_or_null": (Union[float, bool, None], SCALARS),
    "small_int_or_float": (Union[Annotated[int, Field(ge=0, le=5)], float], SCALARS),
    "small_int_or_big_int": (Union[Annotated[int, Field(le=5)], Annotated[int, Field(ge=10)]], SCALARS),
    "list_or_int": (Union[List[int], int], SCALARS + LISTS),
    "ge_le": (Annotated[int, Field(ge=1, le=10)], SCALARS),
    "gt_lt_float": (Annotated[float, Field(gt=0, lt=2)], SCALARS),
    "multiple": (Annotated[int, Field(multiple_of=5)], SCALARS),
    "text_length": (Annotated[str, Field(min_length=2, max_length=4)], SCALARS),
    "text_pattern": (Annotated[str, Field(pattern="^[0-9]+$")], SCALARS),
    "enum_text": (Color, SCALARS),
    "enum_int": (Level, SCALARS),
    "literal_text": (Literal["red", "1"], SCALARS),
    "literal_int": (Literal[1, 2], SCALARS),
    "literal_mixed": (Literal[1, "a", "true"], SCALARS),
    "literal_one": (Literal["red"], SCALARS),
    "datetime": (datetime, ['"2024-01-02T03:04:05"', '"2024-01-02T03:04:05Z"', '"2024-01-02"', "0", "null", '"x"', "[]"]),
    "list_int": (List[int], LISTS),
    "list_float": (List[float], LISTS),
    "list_any": (List[Any], LISTS),
    "set_int": (Set[int], LISTS),
    "tuple": (Tuple[int, str], LISTS),
    "tuple_many": (Tuple[int, ...], LISTS),
    "list_bounded": (Annotated[List[int], Field(min_length=1, max_length=2)], LISTS),
    "list_int_or_list_str": (Union[List[int], List[str]], LISTS),
    "dict": (Dict[str, Any], OBJECTS),
    "dict_int": (Dict[str, int], OBJECTS),
    "dict_list": (Dict[str, List[int]], ['{"a": ["1"]}', '{"a": 1}', '{"a": []}', '{"a": [1.5]}', "{}"]),
    "nested": (Point, OBJECTS),
    "optional_nested": (Optional[Point], OBJECTS, None),
    "list_nested": (List[Point], ['[{"x": "1"}]', '[{"x": 1}, {"y": 1}]', "[]", "[1]", '[{"x": 1, "e": 2, "label": "l"}]']),
    "point_or_pose": (Union[Point, Pose], OBJECTS),
    "pose_or_point": (Union[Pose, Point], OBJECTS),
    "point_or_named": (Union[Point, Named], OBJECTS),
    "point_or_dict": (Union[Point, Dict[str, Any]], OBJECTS),
    "dict_int_or_point": (Union[Dict[str, int], Point], OBJECTS),
    "point_or_int": (Union[Point, int], OBJECTS + SCALARS[:12]),
    "cat_or_dog": (Annotated[Union[Cat, Dog], Field(discriminator="kind")], OBJECTS),
    "cat_or_dog_smart": (Union[Cat, Dog], OBJECTS),
    "tree": (Tree, OBJECTS),
    "open": (Open, OBJECTS),
    "described": (Annotated[Point, Field(description="where", title="Where")], OBJECTS),
    "described_default": (Annotated[Point, Field(description="where")], OBJECTS, Point(x=3)),
    "default_int": (int, ["1", '"2"', "null"], 4),
    "default_list": (List[int], LISTS, [1, 2]),
    "default_enum": (Color, ['"red"', "null"], Color.green),
}


def finite(value):
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list):
        return all(map(finite, value))
    return True


def outcome(model, args):
    try:
        dumped = model.model_validate(args).model_dump(mode="python")
    except pydantic.ValidationError:
        return None
    if not finite(dumped.get("v")):
        return "not finite"
    return json.dumps(model.model_validate(args).model_dump(mode="json"))


def main():
    tables = []
    for name, (kind, inputs, *default) in FIELDS.items():
        model = pydantic.create_model(name, v=(kind, default[0] if default else ...))
        rows = [[None, outcome(model, {})]]
        rows += [[text, outcome(model, {"v": json.loads(text), "ignored": 1})] for text in inputs]
        tables.append({"name": name, "schema": model.model_json_schema(), "rows": rows})
    print('{"pydantic": %s,\n"tables": [' % json.dumps(pydantic.VERSION))
    for index, table in enumerate(tables):
        print('{"name": %s,\n "schema": %s,\n "rows": [' % (json.dumps(table["name"]), json.dumps(table["schema"])))
        print(",\n".join("  " + json.dumps(row) for row in table["rows"]))
        print(" ]}" + ("," if index + 1 < len(tables) else ""))
    print("]}")


main()
