"""A recogniser: answers what a robot sees, and where, on `ovos.robot.recognise`.

It sees nothing itself: it knows the things from a file with the keys of the simulator's `sim` section, which is the ground truth
of a simulated robot. Put a detector in the place of `Things`. What it answers is in schemas/recognition.

    python3 recogniser.py things.json            # on the bus of OVOS
    python3 recogniser.py things.json --lines    # questions on stdin, answers on stdout, a line of JSON each
"""

import argparse
import json
import sys
import threading

TOPIC = "ovos.robot.recognise"


class Things:
    """What is there: `{"objects": [{"name": "cup", "bearing": 10, "tilt": 25, "distance": 0.4, "at": [0.24, -0.04, 0.04]}]}`."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.objects = json.load(file)["objects"]

    def seen(self, frame):
        """The things as an answer has them; with a position where an arm asks in its frame."""
        for thing in self.objects:
            seen = {"name": thing["name"], "angle": thing["bearing"], "tilt": thing.get("tilt", 0), "confidence": 1.0}
            if "distance" in thing:
                seen["distance"] = thing["distance"]
            if frame and "at" in thing:
                x, y, z = thing["at"]
                seen["position"] = {"frame": frame, "x": x, "y": y, "z": z}
            yield seen


def answer(question, things):
    """The answer to one question; the tools for people are another recogniser's."""
    tool, args = question.get("tool"), question.get("args") or {}
    seen = list(things.seen(args.get("frame")))
    if tool == "what_is_there":
        return {"things": seen}
    if tool == "get_known_people":
        return {"count": 0, "people": []}
    if tool == "locate":
        wanted = str(args.get("name", "")).strip().lower()
        for thing in seen:
            if thing["name"].lower() == wanted:
                return thing
        return {"success": False, "message": f"{wanted} is not in view"}
    return {"success": False, "message": f"this recogniser knows things, and nothing of {tool}"}


def serve(things):
    """Answers on the bus until it is interrupted."""
    from ovos_bus_client import Message, MessageBusClient

    bus = MessageBusClient()
    bus.on(TOPIC, lambda message: bus.emit(message.response(answer(message.data, things))))
    bus.run_in_thread()
    bus.connected_event.wait()
    # The robot toolbox looks for a recogniser at once.
    bus.emit(Message(f"{TOPIC}.ready"))
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        bus.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("things", help="a file with the things")
    parser.add_argument("--lines", action="store_true", help="stdin and stdout in place of the bus")
    options = parser.parse_args()
    things = Things(options.things)
    if not options.lines:
        return serve(things)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), things)), flush=True)


if __name__ == "__main__":
    main()
