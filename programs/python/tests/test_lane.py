"""A lane to a service that does not read."""

import socket
import unittest

from ovos_tools_program.frames import MAX_DATA, encode, read_all
from ovos_tools_program.lane import Lane


class TestLane(unittest.TestCase):
    def test_frames_arrive_whole_and_in_order(self) -> None:
        ours, theirs = socket.socketpair()
        theirs.settimeout(10)
        lane = Lane(ours, "data")
        # The socket takes a part of the first; the rest waits and holds up no caller.
        for number in range(30):
            lane.send(encode("notice", "event", {"number": number, "text": "x" * 300_000}))
        self.assertFalse(lane.flush(0.05))
        frames = read_all(theirs, "notice", MAX_DATA)
        self.assertEqual([next(frames).body["number"] for _ in range(30)], list(range(30)))
        self.assertTrue(lane.flush(10))
        ours.close()
        theirs.close()
