"""Booster's own client asks a robot in a DDS domain for what our adapter asks for: booster_client.py DOMAIN."""

import sys
import threading

import booster_robotics_sdk_python as booster

booster.ChannelFactory.Instance().Init(int(sys.argv[1]), "127.0.0.1")
fallen = threading.Event()


def hear(state):
    if state.fall_down_state == booster.FallDownStateType.HAS_FALLEN and state.is_recovery_available:
        fallen.set()


posture = booster.B1FallDownStateSubscriber(hear)
posture.InitChannel()
client = booster.B1LocoClient()
client.Init()
assert client.WaitForService(40000), "the service was not found"


def ask(name, *arguments):
    print("CALL", name, flush=True)
    return getattr(client, name)(*arguments)


grip = booster.GripperMotionParameter()
grip.position, grip.force, grip.speed = 0, 500, 500
mode = ask("GetMode")
assert int(mode.mode) == 1, mode.mode
ask("ChangeMode", booster.RobotMode.kWalking)
ask("Move", 0.25, 0.0, 0.0)
ask("Move", 0.0, 0.0, 0.0)
ask("RotateHeadWithTime", 0.0, 0.5, 500)
ask("WaveHand", booster.HandAction.kHandOpen)
ask("WaveHand", booster.HandAction.kHandClose)
ask("Dance", booster.DanceId.kLuckyCatGesture)
ask("UpperBodyCustomControl", True)
ask("ControlGripper", grip, booster.GripperControlMode.kPosition, booster.HandIndex.kRightHand)
try:
    print("REFUSED", client.SendApiRequest(booster.LocoApiId.kLieDown, ""), flush=True)
except RuntimeError as error:
    print("REFUSED", error, flush=True)
assert fallen.wait(40), "it was not heard that the robot has fallen"
# Its thread calls into Python, which must not be on its way out then.
posture.CloseChannel()
print("the vendor's client is content", flush=True)
