"""ROBOTIS's client on our bus of simulated servos: an XL430 (1) and XL330s (2 and 3) hang on the port given as argument."""

import sys
import time

import dynamixel_sdk.port_handler
from dynamixel_sdk import COMM_RX_TIMEOUT, COMM_SUCCESS, GroupSyncRead, GroupSyncWrite, PacketHandler, PortHandler

ACCESS, LIMIT, ALERT = 7, 6, 128
OFFSET, MODE, TORQUE, ERRORS, PWM, VELOCITY, GOAL, SPEED, POSITION = 20, 11, 64, 70, 100, 112, 116, 128, 132

# The 34 ms it waits for an answer are less than a busy machine may keep the simulated servos from running.
dynamixel_sdk.port_handler.LATENCY_TIMER = 250

port = PortHandler(sys.argv[1])
assert port.openPort() and port.setBaudRate(1_000_000)
servos = PacketHandler(2.0)


def done(result, expected=0):
    *values, comm, error = result
    assert comm == COMM_SUCCESS, servos.getTxRxResult(comm)
    assert error == expected, (error, servos.getRxPacketError(error))
    return values[0] if values else None


def position(servo):
    number = done(servos.read4ByteTxRx(port, servo, POSITION))
    return number - (1 << 32) if number >> 31 else number


def reaches(servo, goal):
    end = time.monotonic() + 20
    while position(servo) != goal:
        assert time.monotonic() < end, f"servo {servo} did not reach {goal}: {position(servo)}"


assert [done(servos.ping(port, servo)) for servo in (1, 2, 3)] == [1060, 1200, 1200]
_, comm, _ = servos.ping(port, 9)
assert comm == COMM_RX_TIMEOUT, comm
found, comm = servos.broadcastPing(port)
assert comm == COMM_SUCCESS and sorted(found) == [1, 2, 3], found

# No torque, no motion; then at the profile's velocity.
done(servos.write4ByteTxRx(port, 1, GOAL, 2148))
assert position(1) == 2048
done(servos.write1ByteTxRx(port, 1, TORQUE, 1))
done(servos.write4ByteTxRx(port, 1, VELOCITY, 50))
reaches(1, 2148)
done(servos.write4ByteTxRx(port, 1, VELOCITY, 10))
done(servos.write4ByteTxRx(port, 1, GOAL, 3500))
assert done(servos.read4ByteTxRx(port, 1, SPEED)) == 10
# It counts from the next goal on.
done(servos.write4ByteTxRx(port, 1, VELOCITY, 0))
assert done(servos.read4ByteTxRx(port, 1, SPEED)) == 10
done(servos.write4ByteTxRx(port, 1, GOAL, 2048))
reaches(1, 2048)

# What is kept is refused with the torque on, and so is what is beyond a limit.
done(servos.write1ByteTxRx(port, 1, MODE, 4), ACCESS)
done(servos.write4ByteTxRx(port, 1, GOAL, 5000), LIMIT)
done(servos.write2ByteTxRx(port, 1, PWM, 886), LIMIT)
done(servos.write4ByteTxRx(port, 1, POSITION, 0), ACCESS)
done(servos.write1ByteTxRx(port, 2, MODE, 5))
done(servos.write1ByteTxRx(port, 1, TORQUE, 0))
done(servos.write1ByteTxRx(port, 1, MODE, 5), LIMIT)

# Turns are counted, until the torque is switched.
done(servos.write2ByteTxRx(port, 2, PWM, 400))
done(servos.write1ByteTxRx(port, 2, TORQUE, 1))
done(servos.write4ByteTxRx(port, 2, GOAL, -1 & 0xFFFF_FFFF))
reaches(2, -1)
done(servos.write4ByteTxRx(port, 2, GOAL, -0x201 & 0xFFFF_FFFF))
reaches(2, -0x201)
# What looks like the head of a packet comes as it is. (This version of the client does not stuff what it writes.)
head = [0, 1, 0xFF, 0xFF, 0xFD, 0x00, 0xFF, 0xFF]
for at in (0, 4):
    done(servos.writeTxRx(port, 2, PWM + at, 4, head[at : at + 4]))
found = done(servos.readTxRx(port, 2, PWM, 8))
assert found == head, found
done(servos.write1ByteTxRx(port, 2, TORQUE, 0))
assert position(2) == 4096 - 0x201
done(servos.write4ByteTxRx(port, 2, OFFSET, -100 & 0xFFFF_FFFF))
assert position(2) == 4096 - 0x201 - 100
done(servos.write1ByteTxRx(port, 2, MODE, 3))
done(servos.write4ByteTxRx(port, 2, OFFSET, -1500 & 0xFFFF_FFFF))
assert position(2) == 4096 - 0x201, "an offset that this mode ignores"

# Sync write and sync read.
together = GroupSyncWrite(port, servos, VELOCITY, 8)
for servo in (1, 3):
    done(servos.write1ByteTxRx(port, servo, TORQUE, 1))
    goal = 2048 + 10 * servo
    assert together.addParam(servo, [200, 0, 0, 0, goal & 0xFF, goal >> 8, 0, 0])
assert together.txPacket() == COMM_SUCCESS
for servo in (1, 3):
    reaches(servo, 2048 + 10 * servo)
positions = GroupSyncRead(port, servos, POSITION, 4)
for servo in (1, 2, 3):
    assert positions.addParam(servo)
assert positions.txRxPacket() == COMM_SUCCESS
assert [positions.getData(servo, POSITION, 4) for servo in (1, 3)] == [2058, 2078]

# An alarm stays, and keeps the torque off, until the servo is restarted. Servo 3 cannot go on: it is at an obstacle.
done(servos.write4ByteTxRx(port, 3, GOAL, 1500))
print("against an obstacle", flush=True)
end = time.monotonic() + 60
while servos.read1ByteTxRx(port, 3, ERRORS)[2] != ALERT:
    assert time.monotonic() < end, "no alarm"
assert done(servos.read1ByteTxRx(port, 3, ERRORS), ALERT) == 0x20
assert done(servos.read1ByteTxRx(port, 3, TORQUE), ALERT) == 0
done(servos.write1ByteTxRx(port, 3, TORQUE, 1), ALERT)
assert done(servos.read1ByteTxRx(port, 3, TORQUE), ALERT) == 0
comm, error = servos.reboot(port, 3)
assert comm == COMM_SUCCESS, comm
assert done(servos.read1ByteTxRx(port, 3, ERRORS)) == 0
done(servos.write1ByteTxRx(port, 3, TORQUE, 1))
port.closePort()
print("the vendor's client is content", flush=True)
