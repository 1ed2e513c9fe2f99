"""The vendor's client on our bus of simulated servos: servos 1, 2 and 3 hang on the port given as argument."""

import sys
import time

import scservo_sdk.port_handler
from scservo_sdk import COMM_RX_TIMEOUT, COMM_SUCCESS, GroupSyncRead, GroupSyncWrite, PacketHandler, PortHandler

# The 34 ms it waits for an answer are less than a busy machine may keep the simulated servos from running.
scservo_sdk.port_handler.LATENCY_TIMER = 250

port = PortHandler(sys.argv[1])
assert port.openPort()
assert port.setBaudRate(1_000_000)
servos = PacketHandler(0)


def done(result):
    *values, comm, error = result if isinstance(result, tuple) else (result, 0)
    assert comm == COMM_SUCCESS, servos.getTxRxResult(comm)
    assert error == 0, servos.getRxPacketError(error)
    return values[0] if values else None


for servo in (1, 2, 3):
    assert done(servos.ping(port, servo)) == 777
_, comm, _ = servos.ping(port, 9)
assert comm == COMM_RX_TIMEOUT, comm

# Read and write, acknowledged.
done(servos.write1ByteTxRx(port, 1, 41, 50))
assert done(servos.read1ByteTxRx(port, 1, 41)) == 50
done(servos.write2ByteTxRx(port, 1, 42, 2148))
assert done(servos.read2ByteTxRx(port, 1, 56)) == 2048, "no torque, no motion"
done(servos.write1ByteTxRx(port, 1, 40, 1))


def reaches(servo, goal):
    end = time.monotonic() + 5
    while done(servos.read2ByteTxRx(port, servo, 56)) != goal:
        assert time.monotonic() < end, f"servo {servo} did not reach {goal}"


reaches(1, 2148)

# A staged write waits for its action.
done(servos.regWriteTxRx(port, 1, 42, 2, [0x00, 0x08]))
time.sleep(0.05)
assert done(servos.read2ByteTxRx(port, 1, 56)) == 2148
assert servos.action(port, 254) == COMM_SUCCESS
reaches(1, 2048)

# Sync write and sync read.
together = GroupSyncWrite(port, servos, 42, 6)
for servo in (1, 2, 3):
    done(servos.write1ByteTxRx(port, servo, 40, 1))
    goal = 2048 + 10 * servo
    assert together.addParam(servo, [goal & 0xFF, goal >> 8, 0, 0, 0xE8, 0x03])
assert together.txPacket() == COMM_SUCCESS
for servo in (1, 2, 3):
    reaches(servo, 2048 + 10 * servo)
positions = GroupSyncRead(port, servos, 56, 2)
for servo in (1, 2, 3):
    positions.addParam(servo)
assert positions.txRxPacket() == COMM_SUCCESS
for servo in (1, 2, 3):
    assert positions.isAvailable(servo, 56, 2)
    assert positions.getData(servo, 56, 2) == 2048 + 10 * servo

# A wheel turns and stands.
done(servos.write1ByteTxRx(port, 3, 55, 0))
done(servos.write1ByteTxRx(port, 3, 33, 1))
done(servos.write2ByteTxRx(port, 3, 46, 500))
assert done(servos.read2ByteTxRx(port, 3, 58)) == 500
assert done(servos.read1ByteTxRx(port, 3, 66)) == 1
done(servos.write2ByteTxRx(port, 3, 46, 0))
assert done(servos.read2ByteTxRx(port, 3, 58)) == 0

# Another id, for good.
done(servos.write1ByteTxRx(port, 2, 55, 0))
done(servos.write1ByteTxRx(port, 2, 5, 12))
done(servos.write1ByteTxRx(port, 12, 55, 1))
assert done(servos.ping(port, 12)) == 777
assert done(servos.read1ByteTxRx(port, 12, 63)) == 31
port.closePort()
print("the vendor's client is content")
