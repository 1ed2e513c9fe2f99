"""A robot with a library of its own, as a toolbox: a base in ROS 2, with rclpy. It hears /cmd_vel and tells /odom.

`domain`, a key of its configuration, is the robot's ROS_DOMAIN_ID.
"""

import functools
import math
import threading
import time
from dataclasses import dataclass
from typing import Annotated, Any, Dict, List

import rclpy
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from ovos_tools_program import Context, Field, Toolbox, ToolError, tool
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import qos_profile_sensor_data

Metres = Annotated[float, Field("Metres ahead, or back where negative.", minimum=-5, maximum=5)]
Speed = Annotated[float, Field("Metres a second.", minimum=0.05, maximum=0.3)]


@dataclass
class Place:
    x: float
    y: float


class Base:
    """A node: what is said to the base, and what it has told last."""

    def __init__(self, config: Dict[str, Any]) -> None:
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=config.get("domain", 0))
        self.node = rclpy.create_node("ovos_tools_base", context=self.context)
        self.velocity = self.node.create_publisher(Twist, "/cmd_vel", 10)
        self.told = (-math.inf, 0.0, 0.0)
        self.node.create_subscription(Odometry, "/odom", self._tell, qos_profile_sensor_data)
        executor = SingleThreadedExecutor(context=self.context)
        executor.add_node(self.node)
        threading.Thread(target=executor.spin, daemon=True).start()

    def _tell(self, odometry: Odometry) -> None:
        here = odometry.pose.pose.position
        self.told = (time.monotonic(), here.x, here.y)

    def say(self, ahead: float) -> None:
        twist = Twist()
        twist.linear.x = ahead
        self.velocity.publish(twist)

    def place(self) -> Place:
        """Where it is, unless it is silent or does not hear: neither is commanded."""
        at, x, y = self.told
        if time.monotonic() - at > 1 or self.velocity.get_subscription_count() == 0:
            raise ToolError("NotConnected", "the base is silent or hears no /cmd_vel; check its power and `domain`")
        return Place(x, y)


class RclpyBase(Toolbox):
    """Drives a base in ROS 2."""

    id = "rclpy_base"
    licence = "Apache-2.0"
    exclusive = True

    def open(self, config: Dict[str, Any]) -> None:
        self.base = Base(config)

    def halt(self, subsystems: List[str], emergency: bool) -> None:
        self.base.say(0.0)

    @classmethod
    def safe_stop(cls, config: Dict[str, Any]) -> None:
        base, end = Base(config), time.monotonic() + 1.8
        while time.monotonic() < end:  # Until it is heard, and again, because nothing answers.
            base.say(0.0)
            time.sleep(0.05)

    @tool("read")
    def where(self) -> Place:
        """Says where the base is, in metres from where it was switched on."""
        return self.base.place()

    @tool("motion", subsystems=["base"], timeout=60)
    def drive(self, context: Context, distance: Metres, speed: Speed = 0.15) -> Place:
        """Drives straight, as far as the base's odometry says."""
        start = self.base.place()
        end = time.monotonic() + 2 + 1.5 * abs(distance) / speed
        try:
            while (gone := math.dist((start.x, start.y), (self.base.told[1:]))) < abs(distance):
                self.base.place()
                if time.monotonic() > end:
                    raise ToolError("HardwareError", f"it has come {gone:.2f} m of {distance} m; look what is in its way")
                # Through `command`, so that no velocity follows a halt.
                context.command(functools.partial(self.base.say, math.copysign(speed, distance)))
                context.progress(gone / abs(distance))
                context.wait(0.05)
        finally:
            self.base.say(0.0)
        return self.base.place()


if __name__ == "__main__":
    RclpyBase.run()
