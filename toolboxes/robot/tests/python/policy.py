"""Stands in for LeRobot's client: moves servos 1 to 6 on the port given as argument, thirty times a second, with the vendor's package.

policy.py PORT PIDS BEHAVIOUR; the numbers of its processes are appended to the file PIDS.
"""

import os
import signal
import sys
import time

from scservo_sdk import GroupSyncWrite, PacketHandler, PortHandler

path, pids, behaviour = sys.argv[1:]
TORQUE, GOAL, SPEED = 40, 42, 46
SERVOS = range(1, 7)


def note():
    with open(pids, "a") as file:
        print(os.getpid(), file=file)


note()
if behaviour == "fails":
    sys.exit("no policy of this name")
if behaviour == "does_nothing":
    sys.exit(0)
if behaviour == "floods":
    while True:
        os.write(1, b"frame dropped\n" * 4096)
if behaviour in ("deaf", "is_deaf_with_a_daemon"):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

port = PortHandler(path)
assert port.openPort() and port.setBaudRate(1_000_000)
servos = PacketHandler(0)


def torque(on):
    together = GroupSyncWrite(port, servos, TORQUE, 1)
    for servo in SERVOS:
        assert together.addParam(servo, [on])
    together.txPacket()


def speed(steps):
    """A greatest speed that stays in the servos."""
    together = GroupSyncWrite(port, servos, SPEED, 2)
    for servo in SERVOS:
        assert together.addParam(servo, [steps & 0xFF, steps >> 8])
    together.txPacket()


def move(end):
    """Swings every servo to and fro."""
    speed(900)
    torque(1)
    ticks = 0
    while time.monotonic() < end:
        ticks += 1
        goal = 2048 + (150 if ticks // 10 % 2 else -150)
        together = GroupSyncWrite(port, servos, GOAL, 2)
        for servo in SERVOS:
            assert together.addParam(servo, [goal & 0xFF, goal >> 8])
        together.txPacket()
        time.sleep(1 / 30)


LEAVE_ONE_BEHIND = ("leaves_one_behind", "loses_its_keeper_to_SIGTERM", "loses_its_keeper_to_SIGINT", "loses_its_keeper_to_SIGHUP", "is_deaf_with_a_daemon")
if behaviour in LEAVE_ONE_BEHIND and os.fork() == 0:
    # Out of the group and of the session, as a daemon is.
    os.setsid()
    note()
    move(time.monotonic() + 3600)

print("the policy runs", flush=True)
if behaviour.startswith("loses_its_keeper_to_"):
    move(time.monotonic() + 1)
    os.kill(os.getppid(), getattr(signal, behaviour.rpartition("_")[2]))
if behaviour == "crashes_at_its_end":
    signal.signal(signal.SIGINT, lambda *_: os.abort())
try:
    move(time.monotonic() + (1.3 if behaviour in ("ends", "leaves_one_behind") else 3600))
except KeyboardInterrupt:
    if behaviour == "fails_at_its_end":
        sys.exit("no connection to save the recording")
    if behaviour == "is_interrupted":
        raise
    if behaviour == "lets_go":
        # What LeRobot does when it disconnects, unless it is told otherwise.
        torque(0)
