"""What peers made of the published Cyclone DDS share: messages, services and actions as ROS 2 Humble has them on the wire.

A peer is started with KIND DOMAIN [WHAT]. It prints a line of JSON for everything that reaches it, and hears words on standard
input: `quit` ends it. A `stubborn` one takes a cancel and goes on, one that `hesitates` thinks for a second before it accepts a goal, one that `dawdles` for
three, and one that is `slow` for 0.3 s before it ends a goal that was cancelled. One that `ponders` takes no goal and never says so; of one that is
`unheard` the acceptance of a goal is lost. One that `objects` refuses the next cancel and takes those after it, one that is `busy`
answers no cancel until it `answers`, one that `forgets` says that it knows no goal, pursues it, and ends it only with all others, and one
that is `quiet` gives no feedback.
"""

import json
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from types import new_class

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import array, float64, int8, int32, int64, sequence, uint8, uint32, uint64
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration


def make(name, /, **fields):
    """A struct of `package/kind/Name` with these fields."""
    package, kind, last = name.split("/")
    body = {"__annotations__": fields}
    made = new_class(last, (IdlStruct,), {"typename": f"{package}::{kind}::dds_::{last}_"}, lambda scope: scope.update(body))
    return dataclass(made)


Time = make("builtin_interfaces/msg/Time", sec=int32, nanosec=uint32)
Duration = make("builtin_interfaces/msg/Duration", sec=int32, nanosec=uint32)
Header = make("std_msgs/msg/Header", stamp=Time, frame_id=str)
Vector3 = make("geometry_msgs/msg/Vector3", x=float64, y=float64, z=float64)
Point = make("geometry_msgs/msg/Point", x=float64, y=float64, z=float64)
Quaternion = make("geometry_msgs/msg/Quaternion", x=float64, y=float64, z=float64, w=float64)
Pose = make("geometry_msgs/msg/Pose", position=Point, orientation=Quaternion)
PoseStamped = make("geometry_msgs/msg/PoseStamped", header=Header, pose=Pose)
Twist = make("geometry_msgs/msg/Twist", linear=Vector3, angular=Vector3)
UUID = make("unique_identifier_msgs/msg/UUID", uuid=array[uint8, 16])
GoalInfo = make("action_msgs/msg/GoalInfo", goal_id=UUID, stamp=Time)
# The header of Cyclone's services: two more fields before the message.
HEADER = {"client": uint64, "number": int64}
CancelGoal = [
    make("action_msgs/srv/CancelGoal_Request", **HEADER, goal_info=GoalInfo),
    make("action_msgs/srv/CancelGoal_Response", **HEADER, return_code=int8, goals_canceling=sequence[GoalInfo]),
]

RELIABLE = Qos(Policy.Reliability.Reliable(duration(milliseconds=100)), Policy.History.KeepLast(50))
kind = sys.argv[1]
participant = DomainParticipant(int(sys.argv[2]))
printing = threading.Lock()
ended = threading.Event()
# The words that were said to it.
said = defaultdict(threading.Event)
hesitates, dawdles, slow, ponders, unheard, objects, busy, forgets, quiet = (
    said[word] for word in ("hesitates", "dawdles", "slow", "ponders", "unheard", "objects", "busy", "forgets", "quiet")
)
held = []


def say(**frame):
    with printing:
        print(json.dumps({"t": time.monotonic(), **frame}), flush=True)


def hear(topic, of, deliver, quality=RELIABLE):
    reader = DataReader(participant, Topic(participant, topic, of), quality)

    def listen():
        while not ended.is_set():
            for sample in reader.take_iter(timeout=duration(milliseconds=20)):
                # A client that leaves is a sample without a message.
                if isinstance(sample, of):
                    deliver(sample)

    threading.Thread(target=listen, daemon=True).start()
    return reader


def writer(topic, of, quality=RELIABLE):
    return DataWriter(participant, Topic(participant, topic, of), quality)


def hears(client, out):
    """Waits until the participant of a client hears a writer, as servers of ROS do: what is written before that is lost."""
    end = time.monotonic() + 10
    # A client is the second half of its writer's id, which begins with the last bytes of the participant's.
    participant = client.to_bytes(8, "little")[:4]
    while time.monotonic() < end:
        readers = (out.get_matched_subscription_data(reader) for reader in out.get_matched_subscriptions())
        if any(reader is not None and reader.key.bytes[8:12] == participant for reader in readers):
            return
        time.sleep(0.002)
    say(unheard=str(out.topic.name))


def serve(name, types, answer):
    replies = writer(f"rr/{name}Reply", types[1])

    def deliver(request):
        def work():
            fields = answer(request)
            if fields is not None:
                hears(request.client, replies)
                replies.write(types[1](request.client, request.number, *fields))

        threading.Thread(target=work, daemon=True).start()

    return hear(f"rq/{name}Request", types[0], deliver), replies


def zero_time():
    return Time(0, 0)


def pursue(name, of, fields, steps, report, outcome):
    """The action `name`, whose goals take a tenth of a second a step. A goal without steps is not accepted. A report has the fields of a
    feedback, nothing, or the number of the state in which the goal ends."""
    goal_type, result_type, feedback_type = (make(f"{of}_{part}", **fields[part]) for part in ("Goal", "Result", "Feedback"))
    message = make(f"{of}_FeedbackMessage", goal_id=UUID, feedback=feedback_type)
    send_goal = [
        make(f"{of}_SendGoal_Request", **HEADER, goal_id=UUID, goal=goal_type),
        make(f"{of}_SendGoal_Response", **HEADER, accepted=bool, stamp=Time),
    ]
    get_result = [
        make(f"{of}_GetResult_Request", **HEADER, goal_id=UUID),
        make(f"{of}_GetResult_Response", **HEADER, status=int8, result=result_type),
    ]
    feedback = writer(f"rt/{name}/_action/feedback", message)
    goals, cancelled, ends = set(), set(), {}

    def send(request):
        identity = bytes(request.goal_id.uuid)
        distance = steps(request.goal)
        if hesitates.is_set():
            say(asked=distance)
            time.sleep(1)
        if dawdles.is_set():
            time.sleep(3)
        if ponders.is_set():
            return None
        if distance is not None:
            goals.add(identity)
            ends[identity] = [threading.Event(), 0]
            say(goal=distance, id=identity.hex(), action=name)
            threading.Thread(target=work, args=(request, distance), daemon=True).start()
        if unheard.is_set():
            return None
        return [distance is not None, zero_time()]

    def work(request, distance):
        goal_id, left = request.goal_id, distance
        identity = bytes(goal_id.uuid)
        hears(request.client, feedback)
        while left > 0:
            time.sleep(0.1)
            left -= 1
            if identity in cancelled and kind != "stubborn":
                time.sleep(0.3 if slow.is_set() else 0)
                ends[identity][1] = 5
                say(canceled=identity.hex())
                break
            told = report(distance, left)
            if isinstance(told, int):
                ends[identity][1] = told
                say(ended=told)
                break
            if told is not None and not quiet.is_set():
                feedback.write(message(goal_id, feedback_type(*told)))
        else:
            ends[identity][1] = 4
            say(reached=identity.hex())
        goals.discard(identity)
        ends[identity][0].set()

    def result(request):
        end = ends.get(bytes(request.goal_id.uuid))
        if end is None or forgets.is_set():
            return [0, result_type(*outcome(0))]
        end[0].wait()
        return [end[1], result_type(*outcome(end[1]))]

    def cancel(request):
        identity = bytes(request.goal_info.goal_id.uuid)
        if busy.is_set():
            say(unanswered=True)
            return None
        if objects.is_set():
            objects.clear()
            say(objected=identity.hex())
            return [1, []]
        known = set() if forgets.is_set() else {identity}
        chosen = set(goals) if identity == bytes(16) else known & goals
        cancelled.update(chosen)
        say(cancel=[identity.hex() for identity in chosen], all=identity == bytes(16))
        infos = [GoalInfo(UUID(list(identity)), zero_time()) for identity in chosen]
        return [0 if chosen or identity == bytes(16) else 3 if known & ends.keys() else 2, infos]

    held.append(serve(f"{name}/_action/send_goal", send_goal, send))
    held.append(serve(f"{name}/_action/get_result", get_result, result))
    held.append(serve(f"{name}/_action/cancel_goal", CancelGoal, cancel))


def wait():
    """Hears words until the last of them."""
    say(ready=True)
    for line in sys.stdin:
        said[line.strip()].set()
        if line.strip() == "answers":
            busy.clear()
        if line.strip() == "quit":
            break
    ended.set()
