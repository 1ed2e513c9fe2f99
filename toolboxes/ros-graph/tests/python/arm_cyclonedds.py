"""An arm behind ros2_control, made of the published Cyclone DDS: arm_cyclonedds.py KIND DOMAIN.

It publishes /joint_states at 50 Hz, its arm's joints and its hand's in messages of their own (one that is in `pieces` each joint in one
of its own, all at once twice a second), and has the action
/scaled_joint_trajectory_controller/follow_joint_trajectory: joints go along the cubic of a trajectory of one point from where they are,
and the goal is given up where they are farther beside it than its path tolerance, or not as close to its end as its goal tolerance when
that time is over. Its hand takes GripperCommand on /gripper/gripper_cmd, or ParallelGripperCommand where KIND is `parallel`. KIND `absent`
has no controller, `other` one of another type, and a `stubborn` one takes a cancel and goes on. Words: it `rejects` goals, is `stuck`,
falls `short`, `lies` that it is there, is `mute` about a goal for ever, is `silent` about its joints, gives its feedback with the joints in
the `other order`, `lags` 0.3 s behind with where its finger is; its hand finds a `thing` that it holds, `jams`
where it is and says that it has done it, `sticks` where it is and is given up as stalled, is `vague` about what stalls it, or `lets go`. The hand of a `half` one
is half open at first.
"""

import math
import threading
import time
from collections import deque

from cyclonedds.idl.types import float64, int32, sequence, uint16

from graph_cyclonedds import Duration, Header, Twist, Vector3, Quaternion, ended, kind, make, pursue, said, say, wait, writer, zero_time

Transform = make("geometry_msgs/msg/Transform", translation=Vector3, rotation=Quaternion)
JointState = make(
    "sensor_msgs/msg/JointState", header=Header, name=sequence[str], position=sequence[float64], velocity=sequence[float64],
    effort=sequence[float64],
)
NUMBERS = sequence[float64]
PointOf = make(
    "trajectory_msgs/msg/JointTrajectoryPoint", positions=NUMBERS, velocities=NUMBERS, accelerations=NUMBERS, effort=NUMBERS,
    time_from_start=Duration,
)
MultiPoint = make(
    "trajectory_msgs/msg/MultiDOFJointTrajectoryPoint", transforms=sequence[Transform], velocities=sequence[Twist],
    accelerations=sequence[Twist], time_from_start=Duration,
)
Trajectory = make("trajectory_msgs/msg/JointTrajectory", header=Header, joint_names=sequence[str], points=sequence[PointOf])
MultiTrajectory = make(
    "trajectory_msgs/msg/MultiDOFJointTrajectory", header=Header, joint_names=sequence[str], points=sequence[MultiPoint]
)
Tolerance = make("control_msgs/msg/JointTolerance", name=str, position=float64, velocity=float64, acceleration=float64)
ComponentTolerance = make(
    "control_msgs/msg/JointComponentTolerance", joint_name=str, component=uint16, position=float64, velocity=float64,
    acceleration=float64,
)
Command = make("control_msgs/msg/GripperCommand", position=float64, max_effort=float64)

JOINTS = [f"{name}_joint" for name in ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")]
FINGER = "finger_joint"
# The joints in radians, at the home of the robot's file, and the opening of the hand in metres.
at = dict(zip(JOINTS, (math.radians(angle) for angle in (0, -90, 90, -90, -90, 0))))
at[FINGER] = 0.05 if kind == "half" else 0.08
rejects, stuck, short, lies, mute, silent, thing, jams, sticks, vague = (
    said[word] for word in ("rejects", "stuck", "short", "lies", "mute", "silent", "thing", "jams", "sticks", "vague")
)
SUCCEEDED, ABORTED = 4, 6


class Following:
    """The trajectory that the controller follows, one at a time."""

    def steps(self, goal):
        names, points = goal.trajectory.joint_names, goal.trajectory.points
        if rejects.is_set() or sorted(names) != sorted(JOINTS) or len(points) != 1 or any(points[0].velocities):
            return None
        self.start = {name: at[name] for name in names}
        self.to = dict(zip(names, points[0].positions))
        self.path, self.close = ({one.name: one.position for one in many} for many in (goal.path_tolerance, goal.goal_tolerance))
        seconds = points[0].time_from_start
        self.count = max(1, math.ceil((seconds.sec + seconds.nanosec / 1e9) * 10))
        fastest = max(abs(self.to[name] - self.start[name]) for name in names) * 1.5 / (self.count / 10)
        say(fastest=math.degrees(fastest), path_tolerance=math.degrees(self.path[names[0]]), seconds=self.count / 10,
            degrees=[math.degrees(self.to[name]) for name in JOINTS])
        self.code = 0
        return self.count if not mute.is_set() else 10**9

    def report(self, distance, left):
        if mute.is_set():
            return None
        done = (distance - left) / distance
        part = done * done * (3 - 2 * done)
        desired = {name: start + (self.to[name] - start) * part for name, start in self.start.items()}
        for name, wanted in desired.items():
            if short.is_set():
                wanted = self.start[name] + (self.to[name] - self.start[name]) * 0.9 * part
            if not (stuck.is_set() or lies.is_set()):
                at[name] = wanted
        if not lies.is_set():
            if any(abs(at[name] - wanted) > self.path[name] for name, wanted in desired.items()):
                self.code = -4
                return ABORTED
            if left == 0 and any(abs(at[name] - wanted) > self.close[name] for name, wanted in self.to.items()):
                self.code = -5
                return ABORTED
        order = sorted(self.to, reverse=True) if said["other order"].is_set() else list(self.to)
        point = PointOf([at[name] for name in order], [], [], [], Duration(0, 0))
        empty = MultiPoint([], [], [], Duration(0, 0))
        return [Header(zero_time(), ""), order, point, point, point, [], empty, empty, empty]

    def outcome(self, status):
        return [self.code, {-4: "path tolerance violation", -5: "goal tolerance violation"}.get(self.code, "")]


FOLLOW = {
    "Goal": {
        "trajectory": Trajectory, "multi_dof_trajectory": MultiTrajectory, "path_tolerance": sequence[Tolerance],
        "component_path_tolerance": sequence[ComponentTolerance], "goal_tolerance": sequence[Tolerance],
        "component_goal_tolerance": sequence[ComponentTolerance], "goal_time_tolerance": Duration,
    },
    "Result": {"error_code": int32, "error_string": str},
    "Feedback": {
        "header": Header, "joint_names": sequence[str], "desired": PointOf, "actual": PointOf, "error": PointOf,
        "multi_dof_joint_names": sequence[str], "multi_dof_desired": MultiPoint, "multi_dof_actual": MultiPoint,
        "multi_dof_error": MultiPoint,
    },
}


class Gripping:
    """The hand: it goes 2 cm in a tenth of a second, and stalls on a thing of 3 cm."""

    def __init__(self, parallel):
        self.parallel, self.stalled, self.reached = parallel, False, False

    def steps(self, goal):
        command = goal.command
        if self.parallel and (command.name != [FINGER] or len(command.position) != 1):
            return None
        self.to = command.position[0] if self.parallel else command.position
        effort = (list(command.effort) or [None])[0] if self.parallel else command.max_effort
        self.stalled = self.reached = False
        say(grips=self.to, effort=effort)
        return 10**9

    def report(self, distance, left):
        if jams.is_set():
            self.reached = True
            return SUCCEEDED
        if sticks.is_set():
            self.stalled = True
            return ABORTED
        closing = self.to < at[FINGER]
        step = min(0.02, abs(self.to - at[FINGER]))
        least = 0.03 if thing.is_set() and closing else -1.0
        at[FINGER] = max(least, at[FINGER] + math.copysign(step, self.to - at[FINGER]))
        if at[FINGER] <= least:
            self.stalled = not vague.is_set()
            # The older controllers give up what stalls, unless they are told otherwise.
            return SUCCEEDED if self.parallel else ABORTED
        if abs(at[FINGER] - self.to) < 1e-6:
            self.reached = True
            return SUCCEEDED
        return self.state()

    def state(self):
        told = [JointState(Header(zero_time(), ""), [FINGER], [at[FINGER]], [], [])] if self.parallel else [at[FINGER], 0.0]
        return [*told, self.stalled, self.reached]

    def outcome(self, status):
        return self.state()


def grips(name, parallel):
    hand = Gripping(parallel)
    state = {"state": JointState} if parallel else {"position": float64, "effort": float64}
    told = {**state, "stalled": bool, "reached_goal": bool}
    fields = {"Goal": {"command": JointState if parallel else Command}, "Result": told, "Feedback": told}
    of = "ParallelGripperCommand" if parallel else "GripperCommand"
    pursue(name, f"control_msgs/action/{of}", fields, hand.steps, hand.report, hand.outcome)


CONTROLLER = "scaled_joint_trajectory_controller/follow_joint_trajectory"
if kind == "other":
    grips(CONTROLLER, False)
elif kind != "absent":
    arm = Following()
    pursue(CONTROLLER, "control_msgs/action/FollowJointTrajectory", FOLLOW, arm.steps, arm.report, arm.outcome)
grips("gripper/gripper_cmd", kind == "parallel")
states = writer("rt/joint_states", JointState)
lags = said["lags"]


def publish():
    in_pieces = kind == "pieces"
    parts = [[name] for name in (*JOINTS, FINGER)] if in_pieces else [JOINTS, [FINGER]]
    fingers = deque([at[FINGER]] * 16, maxlen=16)
    while not ended.is_set():
        time.sleep(0.5 if in_pieces else 0.02)
        fingers.append(at[FINGER])
        if said["lets go"].is_set():
            at[FINGER] = 0.0
        if not silent.is_set():
            for names in parts:
                where = [fingers[0] if lags.is_set() and name == FINGER else at[name] for name in names]
                states.write(JointState(Header(zero_time(), ""), names, where, [], []))


threading.Thread(target=publish, daemon=True).start()
wait()
