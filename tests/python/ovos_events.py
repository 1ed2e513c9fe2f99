"""What a scheduler of OVOS's topics does, as the published interface of skills sees it: ovos_events.py BUS_PORT [serve FOLDER].

Prints one JSON object. With `serve`, the published scheduler serves the bus instead."""
import json
import sys
import time
from collections import defaultdict
from datetime import datetime, timedelta, timezone
from threading import Condition, Event

from ovos_bus_client import Message, MessageBusClient
from ovos_bus_client.apis.events import EventSchedulerInterface

PORT = int(sys.argv[1])
bus = MessageBusClient(host="127.0.0.1", port=PORT)
bus.run_in_thread()
assert bus.connected_event.wait(20), "no bus"

if sys.argv[2:]:
    from ovos_bus_client.util.scheduler import EventScheduler

    EventScheduler(bus, schedule_file=f"{sys.argv[3]}/schedule.json")
    print("the published scheduler serves", flush=True)
    Event().wait()

heard = defaultdict(list)
more = Condition()


def hear(text):
    message = Message.deserialize(text)
    if message.msg_type.startswith(("demo.skill:", "plain")):
        with more:
            heard[message.msg_type].append((time.time(), message))
            more.notify_all()


def until(name, times):
    """Waits until a message was heard so often."""
    with more:
        assert more.wait_for(lambda: len(heard[name]) >= times, 30), (name, times, list(heard))


bus.on("message", hear)
begun = time.time()
skill = EventSchedulerInterface(bus=bus, skill_id="demo.skill")


def ignored(_):
    pass


def later(seconds):
    return datetime.now(timezone.utc) + timedelta(seconds=seconds)


def raw(**data):
    bus.emit(Message("mycroft.scheduler.schedule_event", data, {"source": "demo.skill", "session": {"session_id": "kitchen"}}))


def ago(seconds):
    return begun - seconds


skill.schedule_event(ignored, later(1), {"n": 1}, "once", context={"source": "me", "kept": [1, {"a": None}]})
skill.schedule_repeating_event(ignored, later(0.6), 1, {"n": 2}, "often")
skill.schedule_event(ignored, later(1), {"n": "old"}, "replaced")
skill.schedule_event(ignored, later(1.2), {"n": "new"}, "replaced")
skill.schedule_event(ignored, later(1.2), {"n": "old"}, "updated")
skill.update_scheduled_event("updated", {"n": "new"})
skill.schedule_event(ignored, later(1), {"n": 3}, "cancelled")
skill.cancel_scheduled_event("cancelled")
skill.schedule_event(ignored, later(3600), {"n": 4}, "hour")
skill.schedule_repeating_event(ignored, later(7200), 3600, {"n": 5}, "hours")
# Times that have passed.
raw(event="plain.past", time=ago(10), data={"n": 6})
raw(event="plain.long_past", time=ago(100_000), data={"n": 7})
raw(event="plain.past_repeat", time=ago(1000), repeat=3600, data={"n": 8})
raw(event="plain.often_past", time=ago(100), repeat=30, data={"n": 9})
# What a message may lack, and what is not taken.
raw(event="plain.no_data", time=begun + 1)
raw(event="plain.null", time=begun + 1, repeat=None, data=None)
raw(event="plain.no_repeat", time=begun + 1, repeat=0)
for number, data in enumerate([
    {"time": begun + 1}, {"event": "", "time": begun + 1}, {"event": "plain.bad1"}, {"event": "plain.bad2", "time": None},
    {"event": "plain.bad3", "time": "2030-01-01T00:00:00+00:00"}, {"event": "plain.bad4", "time": "soon"},
    {"event": "plain.bad5", "time": begun + 1, "repeat": -5}, {"event": "plain.bad6", "time": begun + 1, "repeat": "1"},
    {"event": "plain.bad7", "time": begun + 1, "data": [1]}, {"event": "plain.bad8", "time": begun + 1, "data": {"n": "x" * 17000}},
    {"event": "plain.bad9", "time": [1]},
]):
    raw(**data)
for topic in ("remove_event", "update_event"):
    bus.emit(Message(f"mycroft.scheduler.{topic}", {}))
    bus.emit(Message(f"mycroft.scheduler.{topic}", {"event": "plain.unknown"}))


def shown(entry):
    """An entry, with times as they are to the beginning."""
    return [round(entry[0] - begun), entry[1] and float(entry[1]), entry[2]]


def status(name):
    answer = bus.wait_for_response(Message("mycroft.scheduler.get_event", {"name": name}, {"destination": "x", "source": "me"}),
                                   f"mycroft.event_status.callback.{name}", timeout=5)
    assert answer is not None, name
    entry = answer.data["schedule"]
    if entry:
        entry = [*shown(entry), {key: entry[3].get(key) for key in ("skill_id", "kept")}]
    return {"event": answer.data["event"], "schedule": entry, "to": answer.context.get("destination")}


left = skill.get_scheduled_event_status("hour")
assert 3590 < left <= 3600, left
said = {"status": [status(f"demo.skill:{name}") for name in ("hour", "hours", "cancelled", "often")] + [status("plain.past_repeat")]}
until("demo.skill:often", 3)
skill.cancel_scheduled_event("often")
listed = bus.wait_for_response(Message("mycroft.scheduler.list_events"), "mycroft.scheduler.list_events.response", timeout=5)
said["listed"] = {name: [shown(entry) for entry in entries]
                  for name, entries in sorted(listed.data["scheduled_events"].items()) if name != "demo.skill:often"}
# What is due after the next time of the one that was cancelled.
raw(event="plain.end", time=begun + 4.2)
until("plain.end", 1)
said["heard"] = {
    name: [{
        "data": message.data, "kept": message.context.get("kept"), "skill": message.context.get("skill_id"),
        "source": message.context.get("source"), "session": (message.context.get("session") or {}).get("session_id"),
        "scheduler": {key: message.context["scheduler"][key] for key in ("id", "skill_id", "remaining")},
        # A second more is a machine full of tests; less is too early.
        "in time": -0.05 <= at - datetime.fromisoformat(message.context["scheduler"]["due"]).timestamp() < 2 or "late",
        "due": round(datetime.fromisoformat(message.context["scheduler"]["due"]).timestamp() - begun),
    } for at, message in messages]
    for name, messages in sorted(heard.items())
}
print(json.dumps(said), flush=True)
bus.close()
