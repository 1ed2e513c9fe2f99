"""ovos-tools-client in a skill of ovos-workshop, on a bus with a service whose bus callers confirm motion: skill_asks.py PORT."""
import sys
import threading

from ovos_bus_client import Message, MessageBusClient
from ovos_bus_client.session import Session
from ovos_tools_client import ConfirmationRequired, RunFailed, RunStep, ToolsClient, ToolsError
from ovos_workshop.skills.ovos import OVOSSkill

PORT = int(sys.argv[1])
DEADLINE = 60
#: As many as the bus client has threads for handlers, and more.
ASKERS = 40
MOVE = {"subsystems": ["left_arm"], "step_ms": 1, "steps": 3}


def connect():
    bus = MessageBusClient(host="127.0.0.1", port=PORT)
    bus.run_in_thread()
    assert bus.connected_event.wait(DEADLINE), "no bus"
    return bus


class Asker(OVOSSkill):
    """Each message is handled on a thread of the bus client; all of them ask at the same time."""

    def initialize(self):
        self.tools = ToolsClient(self.bus, self.skill_id)
        self.sums, self.done = {}, threading.Semaphore(0)
        self.add_event("test.ask", self.on_ask)
        self.add_event("test.wait", self.on_wait)

    def on_ask(self, message):
        n = message.data["n"]
        self.sums[n] = (self.tools.call("add", {"a": n, "b": 1000}).result["result"], self.tools.get("echo").name,
                        self.tools.plan("assemble", {**MOVE, "subsystems": [f"arm_{n}"]}).subsystems)
        self.done.release()

    def on_wait(self, message):
        try:
            self.tools.call("slow", {"seconds": 300})
        except ToolsError as error:
            self.error = error
        self.done.release()


def refused(what):
    """The error with which it ends."""
    try:
        what()
    except ToolsError as error:
        return error
    raise AssertionError("it has a result")


def until_under_way(count):
    """Waits until the service has so many calls under way."""
    for _ in range(DEADLINE * 10):
        answer = user.wait_for_response(Message("ovos.tools.status"))
        if answer and len(answer.data["calls"]) == count:
            return
    raise AssertionError(f"never {count} calls: {answer and answer.data['calls']}")


user, skill = connect(), Asker(bus=connect(), skill_id="asker.test")
tools = skill.tools

for n in range(ASKERS):
    user.emit(Message("test.ask", {"n": n}, {"session": Session(f"session-{n}").serialize()}))
for _ in range(ASKERS):
    assert skill.done.acquire(timeout=DEADLINE), f"only {len(skill.sums)} have their answers"
assert skill.sums == {n: (n + 1000, "echo", [f"arm_{n}"]) for n in range(ASKERS)}, skill.sums

listed = {tool.name: tool for tool in tools.list()}
assert listed["assemble"].effect == "motion" and listed["add"].argument_schema["properties"], listed
assert {tool.effect for tool in tools.list(effect="read")} == {"read"}

# Longer than the 3 s after which wait_for_response gives up.
assert tools.call("slow", {"seconds": 3.5}).result

seen = []
moved = tools.call("assemble", MOVE, on_confirm=lambda confirmation: True, on_progress=seen.append)
assert moved.ok and moved.result["success"] is True, moved
assert {"wave", "action_started", "action_ended"} <= {progress.kind for progress in seen}, seen

waiting = refused(lambda: tools.call("assemble", MOVE))
assert isinstance(waiting, ConfirmationRequired) and waiting.confirmation.text.startswith("assemble of testbed"), waiting
assert "left_arm" in waiting.confirmation.plan, waiting.confirmation
assert tools.confirm(waiting.confirmation, "assemble", MOVE).ok
again = refused(lambda: tools.confirm(waiting.confirmation, "assemble", MOVE))
assert isinstance(again, ConfirmationRequired), again
declined = refused(lambda: tools.confirm(again.confirmation, "assemble", MOVE, yes=False))
assert declined.kind == "PermissionError", declined

call = tools.start("slow", {"seconds": 300})
until_under_way(1)
call.cancel()
assert refused(call.result).kind == "CancelledError"
assert refused(lambda: tools.call("slow", {"seconds": 300}, timeout=0.2)).kind == "TimeoutError"
assert "missing" in str(refused(lambda: tools.call("missing")))
assert "Tool input validation failed" in str(refused(lambda: tools.call("add", {"a": "x", "b": 1})))

run = tools.run([RunStep("one", "add", {"a": 1, "b": 2}), RunStep("two", "add", {"a": {"$from": "one.result"}, "b": 4})])
assert [step.result["result"] for step in run.steps] == [3, 7], run
failed = refused(lambda: tools.run([RunStep("bad", "fail"), {"id": "after", "name": "add", "args": {"a": 1, "b": 2}, "after": ["bad"]}]))
assert isinstance(failed, RunFailed) and [step.status for step in failed.run.steps] == ["failed", "not_started"], failed

for end in (Message("asker.test.stop", {}, {"session": Session("kitchen").serialize()}),
            Message("ovos.stop", {}, {"session": Session("kitchen").serialize()})):
    user.emit(Message("test.wait", {}, {"session": Session("kitchen").serialize()}))
    until_under_way(1)
    user.emit(end)
    assert skill.done.acquire(timeout=DEADLINE), end.msg_type
    assert skill.error.kind == "CancelledError", (end.msg_type, skill.error)

user.emit(Message("test.wait", {}, {"session": Session("kitchen").serialize()}))
until_under_way(1)
tools.close()
until_under_way(0)
assert "closed" in str(refused(lambda: tools.call("add", {"a": 1, "b": 2})))
print("every asker has its own answer")
skill.default_shutdown()
