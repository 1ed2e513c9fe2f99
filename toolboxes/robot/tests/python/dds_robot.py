"""A robot made of the published Cyclone DDS:
dds_robot.py k1_topics|k1_topics_blind|k1_topics_base|k1_topics_stamped|k1_topics_text|k1_topics_both|k1_rpc|k1_rpc_unsaid|
g1|g1_late_arms|go2 DOMAIN.

The K1 of `k1_topics_blind` hears its topics and does not say where its joints are, that of `k1_topics_base` hears nothing but
velocities. That of `k1_topics_stamped` reads them as geometry_msgs/TwistStamped, as TurtleBot 3 and newer versions of Nav2
do by default; `k1_topics_both` reads both types, and `k1_topics_text` a text under that name. That of `k1_rpc_unsaid` has not said
yet whether it stands, as for the first second after it was found. The arm service of
`g1_late_arms` starts two seconds after the rest, as after a boot of the robot.

It prints a line of JSON for everything that reaches it and says what its kind of robot says. Lines on standard input
change what it does: `status N` answers every request with that code, `silent` answers none, `mode N` sets the mode or
fsm, `fall N` lets a K1 say that it falls (1), lies (2), gets up (3) or stands (0), `gesture N` sets how many
milliseconds an arm action of a G1 takes, `mute 1` has it say no more where its joints are and `mute 0` say it again,
`stuck 1` has its joints stay where they are, whatever they are told, `hush 1` ends what tells of the arms of a K1 behind topics,
`graph N` tells who is in the domain, where the ids on `ros_discovery_info` have N bytes, `quit` ends it. Arms of a robot
that is damped or without power hang at 0.25 rad in every joint.

A G1's arm service does as the vendor documents it (Arm Action Service Interface, and g1_arm_action_client.hpp in
unitree_sdk2): an action is answered when it is over, which takes less than ten seconds by the vendor's example; one that is
asked for meanwhile is refused (7400); some actions are held afterwards, for 20 s at most, and all but the release (99) and
the same action are refused then (7401). The vendor gives no figure for a single action: the 3 s here and the 0.5 s of the
release are ours. Whether the release is refused, too, while an action is under way is not documented: here it is, which is
the harder case. That the arms' weight is joint 29 is from the vendor's example and not from its package.

A K1 says on `fall_down` whether it stands when that changes, and once a second: the vendor gives no figure, and recordings of real ones
by two users have it once a second.

The joints of a K1 behind topics are told in two messages, those of the head as a real one names them (`AAHead_yaw`), which is not as our
model does. That one of them ends and the other goes on is what becomes of a robot where one node for each part publishes
`/joint_states` and one of them dies: a sensor_msgs/JointState tells of as many joints as its publisher likes.

A Go2 follows its last velocity for ever: how long the real one does is not documented, and this is the harder case. It says where it
is fifty times a second, and does not move while it lies (`stuck 1`).
"""

import json
import sys
import threading
import time
from dataclasses import dataclass, field

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication, BuiltinTopicDcpsSubscription
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import array, float32, float64, int8, int32, sequence, uint8, uint32
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

def ros(package, name):
    return f"{package}::msg::dds_::{name}_"


@dataclass
class Vector3(IdlStruct, typename=ros("geometry_msgs", "Vector3")):
    x: float64
    y: float64
    z: float64


@dataclass
class Twist(IdlStruct, typename=ros("geometry_msgs", "Twist")):
    linear: Vector3
    angular: Vector3


@dataclass
class Time(IdlStruct, typename=ros("builtin_interfaces", "Time")):
    sec: int32
    nanosec: uint32


@dataclass
class Header(IdlStruct, typename=ros("std_msgs", "Header")):
    stamp: Time
    frame_id: str


@dataclass
class TwistStamped(IdlStruct, typename=ros("geometry_msgs", "TwistStamped")):
    header: Header
    twist: Twist


@dataclass
class Text(IdlStruct, typename=ros("std_msgs", "String")):
    data: str


@dataclass
class MultiArrayDimension(IdlStruct, typename=ros("std_msgs", "MultiArrayDimension")):
    label: str
    size: uint32
    stride: uint32


@dataclass
class MultiArrayLayout(IdlStruct, typename=ros("std_msgs", "MultiArrayLayout")):
    dim: sequence[MultiArrayDimension]
    data_offset: uint32


@dataclass
class Float64MultiArray(IdlStruct, typename=ros("std_msgs", "Float64MultiArray")):
    layout: MultiArrayLayout
    data: sequence[float64]


@dataclass
class JointState(IdlStruct, typename=ros("sensor_msgs", "JointState")):
    header: Header
    name: sequence[str]
    position: sequence[float64]
    velocity: sequence[float64]
    effort: sequence[float64]


@dataclass
class RpcReqMsg(IdlStruct, typename=ros("booster_msgs", "RpcReqMsg")):
    uuid: str
    header: str
    body: str


@dataclass
class RpcRespMsg(IdlStruct, typename=ros("booster_msgs", "RpcRespMsg")):
    uuid: str
    header: str
    body: str


@dataclass
class BoosterImu(IdlStruct, typename=ros("booster_interface", "ImuState")):
    rpy: array[float32, 3]
    gyro: array[float32, 3]
    acc: array[float32, 3]


@dataclass
class BoosterMotorState(IdlStruct, typename=ros("booster_interface", "MotorState")):
    mode: int8 = 0
    q: float32 = 0.0
    dq: float32 = 0.0
    ddq: float32 = 0.0
    tau_est: float32 = 0.0
    temperature: int8 = 30
    lost: uint32 = 0
    reserve: array[uint32, 2] = field(default_factory=lambda: [0, 0])


@dataclass
class BoosterLowState(IdlStruct, typename=ros("booster_interface", "LowState")):
    imu_state: BoosterImu
    motor_state_parallel: sequence[BoosterMotorState]
    motor_state_serial: sequence[BoosterMotorState]


@dataclass
class FallDownState(IdlStruct, typename=ros("booster_interface", "FallDownState")):
    fall_down_state: uint32
    is_recovery_available: bool


@dataclass
class BoosterMotorCmd(IdlStruct, typename=ros("booster_interface", "MotorCmd")):
    mode: int8
    q: float32
    dq: float32
    tau: float32
    kp: float32
    kd: float32
    weight: float32


@dataclass
class BoosterLowCmd(IdlStruct, typename=ros("booster_interface", "LowCmd")):
    cmd_type: int8
    motor_cmd: sequence[BoosterMotorCmd]


RELIABLE = Qos(Policy.Reliability.Reliable(duration(milliseconds=100)), Policy.History.KeepLast(50))
participant = DomainParticipant(int(sys.argv[2]))
printing = threading.Lock()
asked = {"status": 0, "silent": False, "mode": 1, "fall": 0, "gesture": 3000, "mute": 0, "hush": 0, "stuck": 0, "quit": False}


def say(**frame):
    with printing:
        print(json.dumps({"t": time.monotonic(), **frame}), flush=True)


def hear(topic, kind, deliver):
    reader = DataReader(participant, Topic(participant, topic, kind), RELIABLE)

    def listen():
        while not asked["quit"]:
            for sample in reader.take_iter(timeout=duration(milliseconds=50)):
                deliver(sample)

    threading.Thread(target=listen, daemon=True).start()


def writer(topic, kind):
    return DataWriter(participant, Topic(participant, topic, kind), RELIABLE)


def tell(state, message):
    """Says where the robot's joints are."""
    if not asked["mute"]:
        state.write(message)


def every(seconds, what):
    def repeat():
        while not asked["quit"]:
            what()
            time.sleep(seconds)

    threading.Thread(target=repeat, daemon=True).start()


def graph(length):
    """The endpoints that were discovered, and the nodes that are announced, in their own participants' words."""

    @dataclass
    class Gid(IdlStruct, typename=ros("rmw_dds_common", "Gid")):
        data: array[uint8, length]

    @dataclass
    class NodeEntitiesInfo(IdlStruct, typename=ros("rmw_dds_common", "NodeEntitiesInfo")):
        node_namespace: str
        node_name: str
        reader_gid_seq: sequence[Gid]
        writer_gid_seq: sequence[Gid]

    @dataclass
    class ParticipantEntitiesInfo(IdlStruct, typename=ros("rmw_dds_common", "ParticipantEntitiesInfo")):
        gid: Gid
        node_entities_info_seq: sequence[NodeEntitiesInfo]

    def text(gid):
        return bytes(gid.data).hex()

    latched = Qos(
        Policy.Reliability.Reliable(duration(milliseconds=100)),
        Policy.Durability.TransientLocal,
        Policy.History.KeepLast(1),
    )
    topic = Topic(participant, "ros_discovery_info", ParticipantEntitiesInfo)
    reader = DataReader(participant, topic, latched)
    latest = None
    for _ in range(10):
        # A writer may say again what it said before: the last word counts.
        for info in reader.take_iter(timeout=duration(seconds=1)):
            latest = info
        if latest:
            break
    for node in latest.node_entities_info_seq if latest else []:
        say(
            topic="node",
            participant=text(latest.gid),
            name=node.node_namespace + node.node_name,
            readers=[text(gid) for gid in node.reader_gid_seq],
            writers=[text(gid) for gid in node.writer_gid_seq],
        )
    for role, kind in (("writer", BuiltinTopicDcpsPublication), ("reader", BuiltinTopicDcpsSubscription)):
        for found in BuiltinDataReader(participant, kind).take(N=200):
            say(topic="endpoint", role=role, gid=found.key.hex, name=found.topic_name, type=found.type_name)
    say(topic="graph")


def hang(motors):
    for motor in motors:
        motor.q = 0.25


def k1_topics(hears=True, tells=True, velocity_types=(Twist,)):
    joints = {"left_arm": [0.0] * 6, "right_arm": [0.0] * 6}
    names = ["shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_roll", "wrist_pitch"]

    def velocity(twist):
        say(topic="velocity", velocity=[twist.linear.x, twist.linear.y, twist.angular.z])

    def positions(topic):
        def deliver(message):
            label = message.layout.dim[0].label
            say(topic=topic, label=label, data=list(message.data))
            if label in joints and not asked["stuck"]:
                joints[label] = list(message.data)

        return deliver

    state = writer("rt/joint_states", JointState) if tells else None

    def tell_joints():
        known = {f"{arm}_{name}": q for arm, all_q in joints.items() for name, q in zip(names, all_q)}
        radians = [q * 3.141592653589793 / 180 for q in known.values()]
        if not asked["hush"]:
            tell(state, JointState(Header(Time(0, 0), ""), list(known), radians, [0.0] * 12, [0.0] * 12))
        head = ["AAHead_yaw", "Head_pitch"]
        tell(state, JointState(Header(Time(0, 0), ""), head, [0.0] * 2, [0.0] * 2, [0.0] * 2))

    def stamped(message):
        say(topic="stamp", sec=message.header.stamp.sec, frame=message.header.frame_id)
        velocity(message.twist)

    deliver = {Twist: velocity, TwistStamped: stamped, Text: lambda text: say(topic="text", data=text.data)}
    for kind in velocity_types:
        hear("rt/cmd_vel", kind, deliver[kind])
    if hears:
        hear("rt/head/pan_tilt", Float64MultiArray, positions("head"))
        hear("rt/arm/joint_positions", Float64MultiArray, positions("arm"))
    if tells:
        every(0.05, tell_joints)


def k1_rpc():
    motors = [BoosterMotorState() for _ in range(22)]
    responses = writer("rt/LocoApiTopicResp", RpcRespMsg)

    def request(message):
        header = json.loads(message.header)
        body = json.loads(message.body) if message.body else None
        say(topic="rpc", api=header["api_id"], body=body, header=header, uuid=message.uuid)
        if asked["silent"]:
            return
        answer = ""
        if header["api_id"] == 2017:
            answer = json.dumps({"mode": asked["mode"]})
        if header["api_id"] == 2018:
            answer = json.dumps({"current_mode": asked["mode"], "current_body_control": 1, "current_actions": []})
        if header["api_id"] == 2000:
            asked["mode"] = body["mode"]
            if body["mode"] == 0:
                hang(motors[2:10])
        if header["api_id"] in (2004, 2043) and not asked["stuck"] and not asked["status"]:
            motors[0].q, motors[1].q = body["yaw"], body["pitch"]
        responses.write(RpcRespMsg(message.uuid, json.dumps({"status": asked["status"]}), answer))

    def command(message):
        said = [[motor.q, motor.kp, motor.kd, motor.weight] for motor in message.motor_cmd]
        say(topic="joints", kind=message.cmd_type, motors=said)
        for motor, told in zip(motors, message.motor_cmd):
            if told.weight > 0 and not asked["stuck"]:
                motor.q = told.q

    state = writer("rt/low_state", BoosterLowState)
    hear("rt/LocoApiTopicReq", RpcReqMsg, request)
    hear("rt/joint_ctrl", BoosterLowCmd, command)
    still = BoosterImu([0.0] * 3, [0.0] * 3, [0.0, 0.0, 9.8])
    every(0.02, lambda: tell(state, BoosterLowState(still, motors, motors)))
    posture = writer("rt/fall_down", FallDownState)
    said = {"state": None, "at": 0.0}

    def tell_posture():
        now, fall = time.monotonic(), asked["fall"]
        if fall is not None and (fall != said["state"] or now - said["at"] >= 1):
            said.update(state=fall, at=now)
            posture.write(FallDownState(fall, True))

    every(0.05, tell_posture)


def g1(arms_after=0):
    """Made of the vendor's own package: its message types, topics, numbers of functions and actions, and its checksum."""
    from unitree_sdk2py.core.channel_name import ChannelType, GetServerChannelName
    from unitree_sdk2py.g1.arm import g1_arm_action_api as arm_api
    from unitree_sdk2py.g1.arm.g1_arm_action_client import action_map
    from unitree_sdk2py.g1.loco import g1_loco_api as sport_api
    from unitree_sdk2py.idl.default import unitree_hg_msg_dds__LowState_
    from unitree_sdk2py.idl.unitree_api.msg.dds_ import Request_, Response_, ResponseHeader_, ResponseStatus_
    from unitree_sdk2py.idl.unitree_hg.msg.dds_ import HandCmd_, LowCmd_, LowState_
    from unitree_sdk2py.rpc.internal import RPC_ERR_SERVER_API_NOT_IMPL
    from unitree_sdk2py.utils.crc import CRC

    SPORT, ARM = sport_api.LOCO_SERVICE_NAME, arm_api.ARM_ACTION_SERVICE_NAME
    FUNCTIONS = {
        service: {number for name, number in vars(api).items() if name.startswith("ROBOT_API_ID_")}
        for service, api in ((SPORT, sport_api), (ARM, arm_api))
    }
    low = unitree_hg_msg_dds__LowState_()
    low.mode_machine = 5
    motors = low.motor_state
    for motor in motors:
        motor.mode, motor.temperature, motor.vol = 1, [33, 34], 54.0
    motors[12].q = 0.1
    walking = {"until": None}

    def walk(parameter):
        moves = any(parameter["velocity"])
        walking["until"] = time.monotonic() + parameter["duration"] if moves else None

    def end():
        """As the robot does: a velocity lasts as long as it was told to, and not longer."""
        until = walking["until"]
        if until is not None and until <= time.monotonic():
            walking["until"] = None
            say(topic="stands by itself")

    arm = {"busy": None, "holds": None}
    arm_lock = threading.Lock()
    HOLDING = [action_map[name] for name in ("hands up", "heart", "right heart")]
    RELEASE = action_map["release arm"]

    def finish(action, answer):
        time.sleep(0.5 if action == RELEASE else asked["gesture"] / 1000)
        with arm_lock:
            arm["busy"] = None
            arm["holds"] = (action, time.monotonic() + 20) if action in HOLDING else None
        say(topic="arm over", action=action)
        answer(0)

    def act(action, answer):
        """Performs an arm action and answers when it is over, or says at once why not."""
        with arm_lock:
            held, until = arm["holds"] or (None, 0)
            if asked["status"]:
                code = asked["status"]
            elif action not in action_map.values():
                code = 7402
            elif arm["busy"] is not None:
                code = 7400
            elif held and until > time.monotonic() and action not in (RELEASE, held):
                code = 7401
            else:
                code = 0
                arm["busy"] = action
        if code == 0:
            # Repeating what is held ends it.
            threading.Thread(target=finish, args=(RELEASE if action == held else action, answer), daemon=True).start()
        else:
            say(topic="arm refuses", action=action, code=code)
            answer(code)

    def service(name):
        responses = writer(GetServerChannelName(name, ChannelType.SEND), Response_)

        def request(message):
            identity = message.header.identity
            parameter = json.loads(message.parameter) if message.parameter else None
            noreply = message.header.policy.noreply
            say(topic=name, api=identity.api_id, parameter=parameter, noreply=noreply)
            api = identity.api_id if identity.api_id in FUNCTIONS[name] else None
            if name == SPORT and api == sport_api.ROBOT_API_ID_LOCO_SET_VELOCITY:
                walk(parameter)
            if name == SPORT and api == sport_api.ROBOT_API_ID_LOCO_SET_FSM_ID and parameter["data"] in (0, 1):
                hang(motors[15:29])

            def answer(code):
                if asked["silent"] or noreply:
                    return
                data = ""
                if name == SPORT and api == sport_api.ROBOT_API_ID_LOCO_GET_FSM_ID:
                    data = json.dumps({"data": asked["mode"]})
                responses.write(Response_(ResponseHeader_(identity, ResponseStatus_(code)), data, []))

            if name == ARM and api == arm_api.ROBOT_API_ID_ARM_ACTION_EXECUTE_ACTION:
                act(parameter["data"], answer)
            elif api is None:
                answer(RPC_ERR_SERVER_API_NOT_IMPL)
            else:
                answer(asked["status"])

        hear(GetServerChannelName(name, ChannelType.RECV), Request_, request)

    def command(message):
        say(
            topic="arms",
            crc=message.crc == CRC().Crc(message),
            machine=message.mode_machine,
            weight=message.motor_cmd[29].q,
            motors={str(n): [m.q, m.kp, m.kd] for n, m in enumerate(message.motor_cmd) if m.kp or m.q},
        )
        for joint in range(12, 29) if not asked["stuck"] else ():
            weight = message.motor_cmd[29].q
            motors[joint].q += (message.motor_cmd[joint].q - motors[joint].q) * weight

    def hand(side):
        return lambda message: say(topic="hand", side=side, motors=[[m.mode, m.q] for m in message.motor_cmd])

    state = writer("rt/lowstate", LowState_)
    service(SPORT)
    threading.Timer(arms_after, service, (ARM,)).start() if arms_after else service(ARM)
    hear("rt/arm_sdk", LowCmd_, command)
    hear("rt/dex3/left/cmd", HandCmd_, hand("left"))
    hear("rt/dex3/right/cmd", HandCmd_, hand("right"))
    every(0.01, end)
    every(0.02, lambda: tell(state, low))


def go2():
    """Made of the vendor's own package: its message types, topics and numbers of functions."""
    from unitree_sdk2py.core.channel_name import ChannelType, GetServerChannelName
    from unitree_sdk2py.go2.sport import sport_api
    from unitree_sdk2py.idl.default import unitree_go_msg_dds__SportModeState_
    from unitree_sdk2py.idl.unitree_api.msg.dds_ import Request_, Response_, ResponseHeader_, ResponseStatus_
    from unitree_sdk2py.idl.unitree_go.msg.dds_ import SportModeState_
    from unitree_sdk2py.rpc.internal import RPC_ERR_SERVER_API_NOT_IMPL

    name = sport_api.SPORT_SERVICE_NAME
    known = {number for key, number in vars(sport_api).items() if key.startswith("SPORT_API_ID_")}
    responses = writer(GetServerChannelName(name, ChannelType.SEND), Response_)
    state = writer("rt/sportmodestate", SportModeState_)
    here, speed = unitree_go_msg_dds__SportModeState_(), [0.0, 0.0, 0.0]

    def request(message):
        identity = message.header.identity
        parameter = json.loads(message.parameter) if message.parameter else {}
        if identity.api_id == sport_api.SPORT_API_ID_MOVE:
            speed[:] = [parameter["x"], parameter["y"], parameter["z"]]
            say(topic=name, velocity=speed)
        elif identity.api_id == sport_api.SPORT_API_ID_STOPMOVE:
            speed[:] = [0.0, 0.0, 0.0]
            say(topic=name, velocity=speed)
        else:
            say(topic=name, api=identity.api_id, known=identity.api_id in known)
        if not (asked["silent"] or message.header.policy.noreply):
            code = asked["status"] if identity.api_id in known else RPC_ERR_SERVER_API_NOT_IMPL
            responses.write(Response_(ResponseHeader_(identity, ResponseStatus_(code)), "", []))

    def walk():
        x, y, turn = [0.0] * 3 if asked["stuck"] else speed
        here.position[0] += x * 0.02
        here.position[1] += y * 0.02
        here.imu_state.rpy[2] += turn * 0.02
        here.velocity, here.yaw_speed = [x, y, 0.0], turn
        tell(state, here)

    hear(GetServerChannelName(name, ChannelType.RECV), Request_, request)
    every(0.02, walk)


ROBOTS = {
    "k1_topics": k1_topics,
    "k1_topics_blind": lambda: k1_topics(tells=False),
    "k1_topics_base": lambda: k1_topics(hears=False, tells=False),
    "k1_topics_stamped": lambda: k1_topics(velocity_types=(TwistStamped,)),
    "k1_topics_text": lambda: k1_topics(velocity_types=(Text,)),
    "k1_topics_both": lambda: k1_topics(velocity_types=(Twist, TwistStamped)),
    "k1_rpc": k1_rpc,
    "k1_rpc_unsaid": lambda: asked.update(fall=None) or k1_rpc(),
    "g1": g1,
    "go2": go2,
    "g1_late_arms": lambda: g1(arms_after=2),
}
ROBOTS[sys.argv[1]]()
say(topic="ready")
for line in sys.stdin:
    word, *number = line.split()
    if word == "quit":
        break
    if word == "graph":
        graph(int(number[0]))
        continue
    asked[word] = int(number[0]) if number else True
    say(topic="obeys", word=word)
asked["quit"] = True
