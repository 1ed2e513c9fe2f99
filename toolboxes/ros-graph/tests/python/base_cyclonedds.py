"""A base made of the published Cyclone DDS, as ROS 2 Humble has it on the wire: base_cyclonedds.py KIND DOMAIN
[drives | busy | sees | offers].

KIND says how it hears /cmd_vel: `twist`, `stamped`, `both`, `text` (std_msgs/String), or `deaf` (not at all). It prints a line of
JSON for everything that reaches it. It publishes /odom at 20 Hz (best effort), /battery_state and /scan at 5 Hz, serves /motor_power
(std_srvs/SetBool) and /slow (never answers), and has the action /navigate_to_pose, which takes 0.1 s for each metre and can be
cancelled; `stubborn` bases take a cancel and go on. Its odometry grows by itself; one that `drives` follows its last velocity for
ever, and has the actions /dock and /undock and the service /e_stop of a Create 3. One that is `busy` has 300 topics more, some 10,000
messages a second on /fast, pictures of 6.2 MB on /camera/image_raw and depths on /camera/depth, /odd of a type that nothing
describes, /mixed of two types, and parameters; what is large it publishes only while something subscribes, which it says. One that `sees` has compressed pictures
below /seen, in the formats that compressed_image_transport writes and in others. One that `offers` counts on /counted and, best effort,
on /counted_loosely while something subscribes, from 1001 for the first that does, from 2001 for the second; it says 1 on /firm, and has a
latched 1 on /kept, which it `renews` as 3; when another one `joins`, that one says 2 on both, best effort on /firm and volatile on
/kept. On standard input `quit` ends it, `silent` ends what it publishes, `stuck` its wheels, `wall` is 0.2 m ahead from now on, a
`house` stands 1 m from where it began, a `second scanner` looks behind it where nothing is, a `second count` of its way is 5 m elsewhere,
its scans are `rare` (0.8 s apart), it is `sleepy` about its way (0.7 s apart), it `misses` its dock, and it `hesitates` a second before it
accepts a goal.
"""

import base64
import math
import struct
import sys
import threading
import time
import zlib

from cyclonedds.core import Policy, Qos
from cyclonedds.idl.types import array, float32, float64, int16, int32, int64, sequence, uint8, uint32, uint64
from cyclonedds.util import duration

from graph_cyclonedds import (
    HEADER, RELIABLE, Duration, Header, Point, Pose, PoseStamped, Quaternion, Twist, Vector3, ended, hear, held, kind, make,
    pursue, said, say, serve, wait, writer, zero_time,
)

Text = make("std_msgs/msg/String", data=str)
TwistStamped = make("geometry_msgs/msg/TwistStamped", header=Header, twist=Twist)
PoseCov = make("geometry_msgs/msg/PoseWithCovariance", pose=Pose, covariance=array[float64, 36])
TwistCov = make("geometry_msgs/msg/TwistWithCovariance", twist=Twist, covariance=array[float64, 36])
Odometry = make("nav_msgs/msg/Odometry", header=Header, child_frame_id=str, pose=PoseCov, twist=TwistCov)
LaserScan = make(
    "sensor_msgs/msg/LaserScan", header=Header, angle_min=float32, angle_max=float32, angle_increment=float32,
    time_increment=float32, scan_time=float32, range_min=float32, range_max=float32, ranges=sequence[float32],
    intensities=sequence[float32],
)
BatteryState = make(
    "sensor_msgs/msg/BatteryState", header=Header, voltage=float32, temperature=float32, current=float32, charge=float32,
    capacity=float32, design_capacity=float32, percentage=float32, power_supply_status=uint8, power_supply_health=uint8,
    power_supply_technology=uint8, present=bool, cell_voltage=sequence[float32], cell_temperature=sequence[float32],
    location=str, serial_number=str,
)
SetBool = [
    make("std_srvs/srv/SetBool_Request", **HEADER, data=bool),
    make("std_srvs/srv/SetBool_Response", **HEADER, success=bool, message=str),
]
Trigger = [
    make("std_srvs/srv/Trigger_Request", **HEADER, filler=uint8),
    make("std_srvs/srv/Trigger_Response", **HEADER, success=bool, message=str),
]
Int64 = make("std_msgs/msg/Int64", data=int64)
BEST_EFFORT = Qos(Policy.Reliability.BestEffort, Policy.History.KeepLast(5))
LATCHED = Qos(
    Policy.Reliability.Reliable(duration(milliseconds=100)), Policy.History.KeepLast(1), Policy.Durability.TransientLocal,
)


def pose(x, y):
    return PoseStamped(Header(zero_time(), "map"), Pose(Point(x, y, 0.0), Quaternion(0.0, 0.0, 0.0, 1.0)))


speed = [0.0, 0.0]
drives, busy, sees, offers = (sys.argv[3:] == [word] for word in ("drives", "busy", "sees", "offers"))
place = [0.0, 0.0, 0.0]
silent, stuck, wall, misses, house, rare, sleepy, renews, joins = (
    said[word] for word in ("silent", "stuck", "wall", "misses", "house", "rare", "sleepy", "renews", "joins")
)


def command(told, **frame):
    speed[:] = [told.linear.x, told.angular.z]
    say(**frame, turn=told.angular.z, x=place[0])


if kind in ("twist", "both", "stubborn"):
    held.append(hear("rt/cmd_vel", Twist, lambda m: command(m, twist=m.linear.x)))
if kind in ("stamped", "both"):
    held.append(hear("rt/cmd_vel", TwistStamped, lambda m: command(m.twist, stamped=m.twist.linear.x)))
if kind == "text":
    held.append(hear("rt/cmd_vel", Text, lambda m: say(text=m.data)))


def power(request):
    say(power=request.data)
    return [request.data, "on" if request.data else "off"]


held.append(serve("motor_power", SetBool, power))
held.append(serve("slow", Trigger, lambda request: None))


def way(goal):
    point = goal.pose.pose.position
    return point.x if math.hypot(point.x, point.y) < 1000 else None


NAVIGATE = {
    "Goal": {"pose": PoseStamped, "behavior_tree": str},
    "Result": {"filler": uint8},
    "Feedback": {
        "current_pose": PoseStamped, "navigation_time": Duration, "estimated_time_remaining": Duration,
        "number_of_recoveries": int16, "distance_remaining": float32,
    },
}
pursue(
    "navigate_to_pose", "nav2_msgs/action/NavigateToPose", NAVIGATE, way,
    lambda distance, left: [pose(distance - left, 0.0), Duration(0, 0), Duration(0, 0), 0, left], lambda status: [0],
)
if drives:
    # What a Create 3 has besides: it sees no dock once it `misses` it.
    EStop = [
        make("irobot_create_msgs/srv/EStop_Request", **HEADER, e_stop_on=bool),
        make("irobot_create_msgs/srv/EStop_Response", **HEADER, success=bool, message=str),
    ]

    def stops(request):
        say(e_stop=request.e_stop_on)
        return [True, ""]

    held.append(serve("e_stop", EStop, stops))
    for name, docks, seen in (("dock", True, {"sees_dock": bool}), ("undock", False, {"filler": uint8})):
        docking = {"Goal": {"filler": uint8}, "Result": {"is_docked": bool}, "Feedback": seen}
        pursue(
            name, f"irobot_create_msgs/action/{name.capitalize()}", docking, lambda goal: 10,
            lambda distance, left, docks=docks: [docks], lambda status, docks=docks: [docks and status == 4 and not misses.is_set()],
        )

def while_heard(topic, of, quality, pause, made):
    """Publishes on a topic for as long as something subscribes to it."""
    out = writer(f"rt/{topic}", of, quality)
    message = made()

    def work():
        heard = False
        while not ended.is_set():
            if heard != bool(out.get_matched_subscriptions()):
                heard = not heard
                say(**{"subscribed" if heard else "unsubscribed": topic})
            if not heard:
                time.sleep(0.02)
                continue
            for _ in range(100 if pause < 0.001 else 1):
                out.write(message)
            time.sleep(max(pause, 0.01))

    threading.Thread(target=work, daemon=True).start()
    return out


def counted(topic, quality):
    """Counts on a topic for as long as something subscribes to it, from one thousand more each time."""
    out = writer(f"rt/{topic}", Int64, quality)

    def work():
        heard, thousands, count = False, 0, 0
        while not ended.is_set():
            if heard != bool(out.get_matched_subscriptions()):
                heard = not heard
                thousands += heard
                count = 1000 * thousands
                say(**{"subscribed" if heard else "unsubscribed": topic})
            if heard:
                count += 1
                out.write(Int64(count))
            time.sleep(0.02)

    threading.Thread(target=work, daemon=True).start()
    return out


if offers:
    held.append(counted("counted", RELIABLE))
    held.append(counted("counted_loosely", BEST_EFFORT))
    held.append(while_heard("firm", Int64, RELIABLE, 0.05, lambda: Int64(1)))
    kept = writer("rt/kept", Int64, LATCHED)
    kept.write(Int64(1))

    def change():
        renews.wait()
        kept.write(Int64(3))

    def join():
        joins.wait()
        held.append(while_heard("firm", Int64, BEST_EFFORT, 0.05, lambda: Int64(2)))
        held.append(while_heard("kept", Int64, RELIABLE, 0.05, lambda: Int64(2)))

    threading.Thread(target=change, daemon=True).start()
    threading.Thread(target=join, daemon=True).start()


if sees:
    Compressed = make("sensor_msgs/msg/CompressedImage", header=Header, format=str, data=sequence[uint8])

    def png(width, height, depth, point):
        """A PNG of one grey, in so many bits a point."""
        def chunk(kind, data):
            body = kind + data
            return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

        lines = (b"\0" + point * width) * height
        head = struct.pack(">IIBBBBB", width, height, depth, 0, 0, 0, 0)
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")

    # A white JPEG of 16 x 8 points, from GStreamer's jpegenc.
    JPEG = base64.b64decode(
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAUDBAQEAwUEBAQFBQUGBwwIBwcHBw8LCwkMEQ8SEhEPERETFhwXExQaFRERGCEYGh0d"
        "Hx8fExciJCIeJBweHx7/wAALCAAIABABAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUF"
        "BAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVW"
        "V1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi"
        "4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/APquiv/Z"
    )
    for topic, form, data in (
        ("jpeg", "rgb8; jpeg compressed bgr8", JPEG),
        ("grey", "mono8; jpeg compressed ", JPEG),
        ("camera", "jpeg", JPEG),
        ("png", "bgr8; png compressed bgr8", png(2048, 4, 8, b"\x80")),
        ("depth", "16UC1; compressedDepth png", bytes(12) + png(6, 4, 16, b"\x03\xe8")),
        ("mislabelled", "rgb8; png compressed bgr8", JPEG),
        ("cut", "rgb8; jpeg compressed bgr8", JPEG[:40]),
        ("text", "rgb8; jpeg compressed bgr8", b"no picture"),
        ("none", "", b""),
        ("video", "h264", b"\x00\x00\x00\x01\x67\x42\x00\x1f"),
    ):
        message = Compressed(Header(zero_time(), "lens"), form, list(data))
        held.append(while_heard(f"seen/{topic}", Compressed, BEST_EFFORT, 0.05, lambda message=message: message))


if busy:
    Odd = make("own_msgs/msg/Odd", value=int32)
    Image = make(
        "sensor_msgs/msg/Image", header=Header, height=uint32, width=uint32, encoding=str, is_bigendian=uint8, step=uint32,
        data=sequence[uint8],
    )

    def picture(width, height, encoding, point):
        header = Header(zero_time(), "camera")
        return Image(header, height, width, encoding, 0, width * len(point), list(point) * (width * height))

    held.append(while_heard("fast", Int64, BEST_EFFORT, 0.0001, lambda: Int64(7)))
    held.append(while_heard("camera/image_raw", Image, RELIABLE, 0.2, lambda: picture(1920, 1080, "rgb8", [255, 0, 0])))
    held.append(while_heard("camera/depth", Image, RELIABLE, 0.1, lambda: picture(8, 8, "16UC1", [232, 3])))
    held.append(while_heard("odd", Odd, RELIABLE, 0.1, lambda: Odd(1)))
    held.append(while_heard("mixed", Text, RELIABLE, 0.1, lambda: Text("a")))
    held.append(while_heard("mixed", Int64, RELIABLE, 0.1, lambda: Int64(1)))
    held.extend(writer(f"rt/robot_{number % 7}/sensor_{number}/state", Text) for number in range(300))
    held.append(hear("rt/level", make("std_msgs/msg/Float64", data=float64), lambda m: say(level=m.data)))
    Value = make(
        "rcl_interfaces/msg/ParameterValue", type=uint8, bool_value=bool, integer_value=int64, double_value=float64,
        string_value=str, byte_array_value=sequence[uint8], bool_array_value=sequence[bool],
        integer_array_value=sequence[int64], double_array_value=sequence[float64], string_array_value=sequence[str],
    )
    Listed = make("rcl_interfaces/msg/ListParametersResult", names=sequence[str], prefixes=sequence[str])
    ListParameters = [
        make("rcl_interfaces/srv/ListParameters_Request", **HEADER, prefixes=sequence[str], depth=uint64),
        make("rcl_interfaces/srv/ListParameters_Response", **HEADER, result=Listed),
    ]
    GetParameters = [
        make("rcl_interfaces/srv/GetParameters_Request", **HEADER, names=sequence[str]),
        make("rcl_interfaces/srv/GetParameters_Response", **HEADER, values=sequence[Value]),
    ]
    PARAMETERS = {
        "use_sim_time": Value(1, False, 0, 0.0, "", [], [], [], [], []),
        "speed.max": Value(3, False, 0, 0.5, "", [], [], [], [], []),
        "frames": Value(9, False, 0, 0.0, "", [], [], [], [], ["map", "odom"]),
    }
    held.append(serve("base/list_parameters", ListParameters, lambda request: [Listed(list(PARAMETERS), [])]))
    held.append(serve("base/get_parameters", GetParameters, lambda request: [[PARAMETERS[name] for name in request.names]]))
odometry = writer("rt/odom", Odometry, BEST_EFFORT)
battery = writer("rt/battery_state", BatteryState)
scan = writer("rt/scan", LaserScan, BEST_EFFORT)


def publish():
    count, last = 0, time.monotonic()
    while not ended.is_set():
        time.sleep(0.05)
        if silent.is_set():
            continue
        count += 1
        header = Header(zero_time(), "odom")
        covariance = [0.0] * 36
        ahead, turn = [0.0, 0.0] if stuck.is_set() or not drives else speed
        now = time.monotonic()
        if drives:
            place[2] += turn * (now - last)
            place[0] += ahead * math.cos(place[2]) * (now - last)
            place[1] += ahead * math.sin(place[2]) * (now - last)
        else:
            place[0] = count / 100
        last = now
        moving = Twist(Vector3(ahead, 0.0, 0.0), Vector3(0.0, 0.0, turn))
        half = place[2] / 2
        here = Pose(Point(place[0], place[1], 0.0), Quaternion(0.0, 0.0, math.sin(half), math.cos(half)))
        if not sleepy.is_set() or count % 14 == 0:
            odometry.write(Odometry(header, "base_link", PoseCov(here, covariance), TwistCov(moving, covariance)))
        if said["second count"].is_set():
            there = Pose(Point(place[0] + 5.0, place[1], 0.0), here.orientation)
            odometry.write(Odometry(header, "base_link", PoseCov(there, covariance), TwistCov(moving, covariance)))
        if count % 4 == 0:
            battery.write(BatteryState(header, 12.1, math.nan, -0.5, 1.0, 2.0, 2.0, 0.5, 2, 1, 3, True, [4.0, 4.0], [], "", "a1"))
            ranges = [1.0, math.inf, math.nan, 0.1]
            if drives:
                ranges = [1.0, 1.0, 1.0, 0.2 if wall.is_set() else 1.0 - place[0] if house.is_set() else 5.0]
            if not rare.is_set() or count % 16 == 0:
                scan.write(LaserScan(Header(zero_time(), "front"), -1.5, 0.0, 0.5, 0.0, 0.2, 0.1, 10.0, ranges, []))
            if said["second scanner"].is_set():
                scan.write(LaserScan(Header(zero_time(), "rear"), -1.5, 0.0, 0.5, 0.0, 0.2, 0.1, 10.0, [5.0] * 4, []))


threading.Thread(target=publish, daemon=True).start()
wait()
