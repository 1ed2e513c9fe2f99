"""A robot of ROS 2's own wheels (rclpy, Fast DDS): base_rclpy.py. The domain is ROS_DOMAIN_ID.

It prints a line of JSON for everything that reaches it. It publishes /odom at 20 Hz, a latched /robot_description and
/wide, serves /motor_power (std_srvs/SetBool) and /slow (answers after a minute), and has the action /fibonacci, which takes
0.1 s for each number and can be cancelled; an order of 99 is refused.
"""

import json
import sys
import threading
import time

import rclpy
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import MultiThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from test_msgs.action import Fibonacci
from test_msgs.msg import WStrings


def say(**frame):
    print(json.dumps({"t": time.monotonic(), **frame}), flush=True)


class Base(Node):
    def __init__(self):
        # Jazzy and newer describe their types unless they are told not to.
        super().__init__("base")
        group = ReentrantCallbackGroup()
        self.create_subscription(Twist, "cmd_vel", self.moved, 10)
        self.odometry = self.create_publisher(Odometry, "odom", 10)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.description = self.create_publisher(String, "robot_description", latched)
        self.description.publish(String(data="<robot/>"))
        self.wide = self.create_publisher(WStrings, "wide", 10)
        self.create_subscription(WStrings, "wide_back", lambda m: say(wide=m.wstring_value), 10)
        self.create_timer(0.05, self.tick, callback_group=group)
        self.create_service(SetBool, "motor_power", self.power, callback_group=group)
        self.create_service(Trigger, "slow", self.slow, callback_group=group)
        self.action = ActionServer(
            self, Fibonacci, "fibonacci", self.count, callback_group=group,
            goal_callback=lambda goal: GoalResponse.REJECT if goal.order == 99 else GoalResponse.ACCEPT,
            cancel_callback=lambda goal: CancelResponse.ACCEPT,
        )
        self.x = 0.0

    def moved(self, twist):
        say(cmd_vel=twist.linear.x)

    def tick(self):
        self.x += 0.01
        message = Odometry()
        message.header.frame_id = "odom"
        message.header.stamp = self.get_clock().now().to_msg()
        message.pose.pose.position.x = self.x
        message.pose.covariance[35] = float("inf")
        self.odometry.publish(message)
        self.wide.publish(WStrings(wstring_value="wide ä€😀"))

    def power(self, request, response):
        say(power=request.data)
        response.success = request.data
        response.message = "on" if request.data else "off"
        return response

    def slow(self, _request, response):
        time.sleep(60)
        return response

    def count(self, goal):
        say(goal=goal.request.order)
        sequence = [0, 1]
        for _ in range(goal.request.order):
            time.sleep(0.1)
            if goal.is_cancel_requested:
                goal.canceled()
                say(canceled=len(sequence))
                return Fibonacci.Result(sequence=sequence)
            sequence.append(sequence[-1] + sequence[-2])
            goal.publish_feedback(Fibonacci.Feedback(sequence=sequence))
        goal.succeed()
        say(reached=len(sequence))
        return Fibonacci.Result(sequence=sequence)


rclpy.init()
base = Base()
executor = MultiThreadedExecutor(8)
executor.add_node(base)
threading.Thread(target=executor.spin, daemon=True).start()
say(ready=True)
for line in sys.stdin:
    if line.strip() == "quit":
        break
sys.stdout.flush()
import os

os._exit(0)
