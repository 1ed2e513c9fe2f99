"""A toolbox that moves something: a simulated joint, with a halt, an emergency stop and a safe stop.

`journal`, a key of its configuration, names a file; each command to the joint is a line of it.
"""

import functools
import threading
import time
from dataclasses import dataclass
from typing import Annotated, Any, Dict, List

from ovos_tools_program import Action, Context, Field, Toolbox, ToolError, action, conclude, planned, tool

Angle = Annotated[float, Field("Degrees.", minimum=-90, maximum=90)]


@dataclass
class Position:
    angle: float
    simulated: bool = True


class Joint:
    """The machine. It keeps the last command; a real one has a port here."""

    def __init__(self, journal: str = "") -> None:
        self.angle = 0.0
        self._journal = journal
        self._lock = threading.Lock()

    def command(self, text: str) -> None:
        if self._journal:
            with self._lock, open(self._journal, "a") as file:
                file.write(f"{time.monotonic():.3f} {text}\n")

    def step(self, angle: float) -> None:
        self.angle = angle
        self.command(f"angle {angle:g}")


class Mover(Toolbox):
    """One simulated joint."""

    id = "mover"
    licence = "Apache-2.0"
    exclusive = True

    def open(self, config: Dict[str, Any]) -> None:
        self.joint = Joint(config.get("journal", ""))
        self.button = False
        self.host.simulator("no joint is connected")

    def halt(self, subsystems: List[str], emergency: bool) -> None:
        self.joint.command("torque off" if emergency else "hold")

    def resume(self) -> None:
        if self.button:
            raise ToolError("EmergencyStop", "the button is still pressed; release it and resume again")

    @classmethod
    def safe_stop(cls, config: Dict[str, Any]) -> None:
        Joint(config.get("journal", "")).command("safe stop")

    @tool("read")
    def where(self) -> Position:
        """Says where the joint is."""
        return Position(self.joint.angle)

    @tool("motion", subsystems=["joint"], timeout=15)
    def move(self, context: Context, angle: Angle) -> Position:
        """Moves the joint to an angle, one degree in 10 ms."""
        start = self.joint.angle
        steps = max(1, int(abs(angle - start)))
        for step in range(1, steps + 1):
            target = start + (angle - start) * step / steps
            # Through `command`, so that no step follows a halt.
            context.command(functools.partial(self.joint.step, target))
            context.progress(step / steps)
            context.wait(0.01)
        return Position(self.joint.angle)

    @planned("motion", timeout=30)
    def wave(self, times: Annotated[int, Field("How often.", minimum=1)] = 1) -> List[Action]:
        """Waves, and comes back to the middle."""
        out = Action("swing", {"times": times}, subsystems=["joint"], timeout=15)
        return [out, Action("centre", subsystems=["joint"], after=["swing"], timeout=15)]

    @conclude(wave)
    def waved(self, args: Dict[str, Any], report: Dict[str, Any]) -> Position:
        return Position(self.joint.angle)

    @action
    def swing(self, context: Context, times: int) -> Position:
        for _ in range(times):
            self.move(context, 10)
            self.move(context, -10)
        return Position(self.joint.angle)

    @action
    def centre(self, context: Context) -> Position:
        return self.move(context, 0)

    @tool("safe", subsystems=["joint"])
    def hold(self, context: Context) -> Position:
        """Holds the joint where it is."""
        context.command(lambda: self.joint.command("hold"))
        return Position(self.joint.angle)


if __name__ == "__main__":
    Mover.run()
