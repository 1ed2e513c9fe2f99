"""The rules of docs/protocol.md that need no process: starts, stops, schemas and frames."""

from __future__ import annotations

import dataclasses
import enum
import struct
import threading
import unittest
from typing import Annotated, Any, Callable, Dict, List, Literal, Optional, Tuple, TypedDict, Union

from ovos_tools_program import Action, Field, Toolbox, action, conclude, planned, tool
from ovos_tools_program.errors import ToolError
from ovos_tools_program.frames import FrameError, Splitter, decode, encode, to_json
from ovos_tools_program.ledger import Ledger
from ovos_tools_program.rates import Rate
from ovos_tools_program.run import covers
from ovos_tools_program.schema import BadValue, from_json, schema_of
from ovos_tools_program.stops import Stops
from ovos_tools_program.testing import Failed, Harness
from ovos_tools_program.toolbox import AuthorsBox


class Starts(unittest.TestCase):
    def test_a_cancel_that_overtakes_its_start(self) -> None:
        ledger = Ledger(0)
        self.assertTrue(ledger.begins(1))
        ledger.cancelled(3, starts=3)
        self.assertTrue(ledger.begins(2))
        self.assertFalse(ledger.begins(3))

    def test_a_cancel_of_a_run_that_has_ended_is_forgotten(self) -> None:
        ledger = Ledger(0)
        ledger.begins(1)
        ledger.cancelled(1, starts=1)
        self.assertTrue(ledger.begins(2))

    def test_a_start_from_before_a_stop_is_stale(self) -> None:
        ledger = Ledger(2)
        ledger.stopped(3)
        ledger.stopped(1)
        self.assertEqual([ledger.is_stale(epoch) for epoch in (2, 3, 4)], [True, False, False])


class Machine:
    """Notes halts and resumes; a gate holds those that begin while it is closed inside the toolbox."""

    def __init__(self) -> None:
        self.halts: List[bool] = []
        self.inside = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.refuses_resumes = False

    def halt(self, subsystems: List[str], emergency: bool) -> None:
        self.halts.append(emergency)
        self.pass_gate()

    def resume(self) -> None:
        self.pass_gate()
        if self.refuses_resumes:
            raise ToolError("HardwareError", "a motor is hot")

    def pass_gate(self) -> None:
        gate = self.gate
        self.inside.set()
        gate.wait(5)


class StopOrder(unittest.TestCase):
    def setUp(self) -> None:
        self.machine = Machine()
        self.stops = Stops(self.machine.halt, self.machine.resume)

    def emergency(self) -> None:
        self.stops.emergency_begins()
        self.stops.halt(["all"], True)

    def resume(self) -> None:
        self.stops.resume(self.stops.resume_begins())

    def beside(self, work: Any) -> Callable[[], None]:
        """Holds `work` inside the toolbox until what this returns is called. What begins later is not held."""
        gate, machine = threading.Event(), self.machine
        machine.gate = gate
        machine.inside.clear()
        thread = threading.Thread(target=work)
        thread.start()
        self.assertTrue(machine.inside.wait(5))
        machine.gate = threading.Event()
        machine.gate.set()

        def end() -> None:
            gate.set()
            thread.join()

        return end

    def resume_beside(self) -> Tuple[Callable[[], None], List[ToolError]]:
        errors: List[ToolError] = []

        def resume() -> None:
            try:
                self.resume()
            except ToolError as error:
                errors.append(error)

        return self.beside(resume), errors

    def test_no_gentle_halt_after_an_emergency_until_a_resume(self) -> None:
        self.emergency()
        self.stops.halt(["arm"], False)
        self.assertEqual(self.machine.halts, [True])
        self.resume()
        self.stops.halt(["arm"], False)
        self.assertEqual(self.machine.halts, [True, False])

    def test_a_gentle_halt_under_way_is_followed_by_the_emergency_again_unless_that_was_lifted(self) -> None:
        for is_lifted in (False, True):
            with self.subTest(is_lifted=is_lifted):
                self.setUp()
                end = self.beside(lambda: self.stops.halt(["arm"], False))
                self.stops.emergency_begins()
                if is_lifted:
                    self.resume()
                end()
                self.assertEqual(self.machine.halts, [False] if is_lifted else [False, True])
                self.assertEqual(self.stops.stopped, not is_lifted)

    def test_a_resume_that_a_stop_overtakes_fails_and_the_stop_holds(self) -> None:
        for refuses in (False, True):
            with self.subTest(refuses=refuses):
                self.setUp()
                self.machine.refuses_resumes = refuses
                self.emergency()
                end, errors = self.resume_beside()
                self.stops.emergency_begins()
                end()
                self.assertEqual([error.kind for error in errors], ["EmergencyStop"])
                self.assertEqual(self.machine.halts, [True, True])
                self.assertTrue(self.stops.stopped)

    def test_a_resume_that_the_toolbox_refuses_lifts_nothing(self) -> None:
        self.machine.refuses_resumes = True
        self.emergency()
        with self.assertRaisesRegex(ToolError, "a motor is hot"):
            self.resume()
        self.assertEqual(self.machine.halts, [True])
        self.assertTrue(self.stops.stopped)

    def test_a_stop_that_overtook_a_resume_and_was_lifted_is_not_repeated(self) -> None:
        self.emergency()
        end, errors = self.resume_beside()
        self.emergency()
        self.resume()
        end()
        self.assertEqual((errors, self.machine.halts), ([], [True, True]))
        self.assertFalse(self.stops.stopped)

    def test_a_repeated_halt_is_gentle_once_the_stop_was_lifted(self) -> None:
        self.emergency()
        self.stops.again(["arm"])
        self.resume()
        self.stops.again(["arm"])
        self.assertEqual(self.machine.halts, [True, True, False])


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    """A place."""

    x: float
    y: float = 0.0


class Options(TypedDict, total=False):
    deep: bool


TYPES = [
    (int, {"type": "integer"}, 2.0, 2),
    (float, {"type": "number"}, 2, 2.0),
    (str, {"type": "string"}, "é", "é"),
    (bool, {"type": "boolean"}, True, True),
    (Any, {}, [None], [None]),
    (list, {"type": "array"}, [1], [1]),
    (List[int], {"type": "array", "items": {"type": "integer"}}, [1], [1]),
    (dict, {"type": "object"}, {"a": 1}, {"a": 1}),
    (Dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}, {"a": 1}, {"a": 1.0}),
    (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, None),
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "a", "a"),
    (Literal["a", 1], {"enum": ["a", 1]}, 1, 1),
    (Colour, {"enum": ["red"]}, "red", Colour.RED),
    (Annotated[int, "How many."], {"type": "integer", "description": "How many."}, 3, 3),
    (Annotated[int, Field("How many.", minimum=1)], {"type": "integer", "description": "How many.", "minimum": 1}, 3, 3),
    (
        Tuple[int, str],
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        [1, "a"],
        (1, "a"),
    ),
    (
        Point,
        {
            "type": "object", "description": "A place.", "required": ["x"],
            "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0.0}},
        },
        {"x": 1},
        Point(1.0),
    ),
    (Options, {"type": "object", "properties": {"deep": {"type": "boolean"}}}, {"deep": True}, {"deep": True}),
]
BAD = [
    (int, 1.5), (int, True), (int, "1"), (float, None), (str, 1), (bool, 1), (List[int], ["a"]), (Colour, "blue"),
    (Literal[1], True), (Point, {"y": 1}), (Point, {"x": "a"}), (Dict[str, int], {"a": "b"}), (Optional[int], "a"),
    (Tuple[int, int], [1]),
]


class Types(unittest.TestCase):
    def test_schemas_and_values(self) -> None:
        for hint, schema, value, made in TYPES:
            with self.subTest(hint):
                self.assertEqual(schema_of(hint), schema)
                self.assertEqual(from_json(value, hint, "it"), made)

    def test_values_of_another_type_are_named(self) -> None:
        for hint, value in BAD:
            with self.subTest((hint, value)), self.assertRaisesRegex(BadValue, "^it"):
                from_json(value, hint, "it")

    def test_what_has_no_schema_is_refused_when_the_program_starts(self) -> None:
        class Bad(Toolbox):
            id = "bad"

            @tool("read")
            def get(self, what: complex) -> None: ...

        with self.assertRaisesRegex(TypeError, "Bad.get: `what`: .*complex.* has no JSON Schema"):
            AuthorsBox(Bad)

    def test_an_effect_is_required(self) -> None:
        with self.assertRaises(TypeError):
            tool()  # type: ignore[call-arg]
        with self.assertRaisesRegex(TypeError, "one of read, write, motion"):
            tool("reads")

    def test_a_toolbox_that_moves_needs_a_halt(self) -> None:
        class Moves(Toolbox):
            id = "moves"

            @tool("motion")
            def go(self) -> None: ...

        with self.assertRaisesRegex(TypeError, "go.*no `halt`"):
            AuthorsBox(Moves)


class Planning(unittest.TestCase):
    def test_the_tools_of_a_machine(self) -> None:
        class Arm(Toolbox):
            id = "arm"

            def halt(self, subsystems: List[str], emergency: bool) -> None: ...

            @planned("motion")
            def wave(self, arm: str) -> List[Action]:
                return [Action("lift", {"arm": arm}, [arm], id="up", timeout=2), Action("drop", subsystems=[arm], after=["up"])]

            @conclude(wave)
            def waved(self, args: Dict[str, Any], report: Dict[str, Any]) -> str:
                if report["outcome"] != "completed":
                    raise ToolError("HardwareError", f"{args['arm']} did not wave")
                return args["arm"]

            @action
            def lift(self, arm: str) -> None: ...

            @action
            def drop(self) -> None: ...

            @planned("motion")
            def jump(self) -> List[Action]:
                return [Action("fly")]

            @tool("motion", subsystems=["left"])
            def touch(self, force: float = 1.0) -> None: ...

            @tool("stop")
            def stop_all(self) -> Dict[str, bool]:
                return {"stopped": True}

        with Harness(Arm) as arm:
            self.assertEqual(list(arm.tools()), ["wave", "jump", "touch", "stop_all"])
            self.assertEqual(arm.tools()["wave"]["output_schema"]["properties"], {"result": {"type": "string"}})
            self.assertEqual(arm.plan("wave", {"arm": "left"}), [
                {"id": "up", "name": "lift", "params": {"arm": "left"}, "subsystems": ["left"], "dependencies": [], "timeout_ms": 2000},
                {"name": "drop", "params": {}, "subsystems": ["left"], "dependencies": ["up"]},
            ])
            with self.assertRaisesRegex(Failed, "PlanError: there is no method `fly`"):
                arm.plan("jump", {})
            touch = {"id": "touch", "name": "touch", "params": {"force": 2}, "subsystems": ["left"]}
            self.assertEqual(arm.plan("touch", {"force": 2}), [touch])
            self.assertIsNone(arm.plan("stop_all", {}))
            asked = {"tool": "wave", "args": {"arm": "left"}, "report": {"outcome": "completed", "actions": []}}
            self.assertEqual(arm.ask("conclude", "concluded", asked), {"output": {"result": "left"}})
            with self.assertRaisesRegex(Failed, "HardwareError: left did not wave"):
                arm.ask("conclude", "concluded", {**asked, "report": {"outcome": "failed", "actions": []}})
            self.assertIsNone(arm.ask("conclude", "concluded", {**asked, "tool": "touch"}))
            self.assertEqual(arm.ask("conclude", "concluded", {**asked, "tool": "stop_all"}), {"output": {"stopped": True}})

    def test_two_tools_of_one_name_are_refused(self) -> None:
        class Two(Toolbox):
            id = "two"

            @tool("read")
            def get(self) -> None: ...

            @tool("read", name="get")
            def other(self) -> None: ...

        with self.assertRaisesRegex(TypeError, "two tools or actions `get`"):
            AuthorsBox(Two)


class Frames(unittest.TestCase):
    def test_the_name_stands_first(self) -> None:
        frame = encode("notice", "planned", {"seq": 2}, "weather")
        self.assertEqual(frame[4:], b'{"notice":"planned","toolbox":"weather","body":{"seq":2}}')
        self.assertEqual(struct.unpack("<I", frame[:4])[0], len(frame) - 4)
        for text in (b'{"body":{},"order":"tools"}', b"[]", b"nonsense", b'{"notice":"tools"}', b'{"order":1}'):
            with self.subTest(text), self.assertRaises(FrameError):
                decode(text, "order")

    def test_pieces_become_frames(self) -> None:
        frames = encode("order", "beat", {"seq": 1}) + encode("order", "beat", {"seq": 2})
        splitter = Splitter(100)
        texts = [text for at in range(len(frames)) for text in splitter.feed(frames[at : at + 1])]
        self.assertEqual([decode(text, "order").body["seq"] for text in texts], [1, 2])
        with self.assertRaises(FrameError):
            list(splitter.feed(struct.pack("<I", 101)))

    def test_what_is_not_json_is_refused(self) -> None:
        for value in (float("nan"), float("inf"), "\ud800", {1, 2}):
            with self.subTest(value), self.assertRaises((ValueError, TypeError)):
                to_json(value)
        self.assertEqual(to_json(10**40), b"1" + 40 * b"0")


class Others(unittest.TestCase):
    def test_which_subsystems_a_halt_covers(self) -> None:
        rows = [
            (["all"], "arm", True), (["arm"], "arm", True), (["arm"], "leg", False), (["two/all"], "two/arm", True),
            (["two/all"], "one/arm", False), (["two/arm"], "two/leg", False), ([], "arm", False),
        ]
        for halted, subsystem, covered in rows:
            with self.subTest((halted, subsystem)):
                self.assertEqual(bool(covers(halted, subsystem)), covered)

    def test_a_flood_is_cut_to_the_burst(self) -> None:
        rate = Rate(10, 0.001)
        self.assertEqual(sum(rate.allows() for _ in range(100)), 10)
