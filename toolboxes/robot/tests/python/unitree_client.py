"""Unitree's own clients ask a G1 in a DDS domain for what our adapter asks for: unitree_client.py DOMAIN damp|torque_off."""

import os
import sys

from unitree_sdk2py.core import channel
from unitree_sdk2py.g1.arm.g1_arm_action_client import G1ArmActionClient, action_map
from unitree_sdk2py.g1.loco.g1_loco_client import LocoClient

# Its own default joins every network of this machine.
channel.ChannelConfigAutoDetermine = os.environ["CYCLONEDDS_URI"]
channel.ChannelFactoryInitialize(int(sys.argv[1]))
sport, arm = LocoClient(), G1ArmActionClient()
for client in (sport, arm):
    client.SetTimeout(10.0)
    client.Init()
print("velocity:", sport.SetVelocity(0.25, 0.0, 0.0, 0.5), flush=True)
sport.StopMove()
print("wave:", arm.ExecuteAction(action_map["high wave"]), flush=True)
print("release:", arm.ExecuteAction(action_map["release arm"]), flush=True)
if sys.argv[2] == "damp":
    sport.Damp()
else:
    sport.ZeroTorque()
# No gesture of this robot: it says so, which reaches the client.
print("unknown action:", arm._Call(7106, '{"data": 1000}')[0], flush=True)
# Its threads do not end by themselves.
os._exit(0)
