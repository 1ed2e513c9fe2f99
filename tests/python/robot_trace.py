"""The trace of the simulated robot: what it was commanded to do."""
import json
import time

DEADLINE = 60
#: How long a robot that was stopped is watched, in seconds: several waves of a dance.
STILL = 0.5


def trace(path):
    """Every command so far."""
    try:
        with open(path) as lines:
            # The last line may be incomplete.
            return [json.loads(line) for line in lines.read().split("\n")[:-1]]
    except FileNotFoundError:
        return []


def moves(path):
    """How many commands move something."""
    return sum(line["do"] in ("move", "drive") for line in trace(path))


def until_it_moves(path, before):
    """Waits until there are more moves than this."""
    end = time.monotonic() + DEADLINE
    while moves(path) <= before:
        assert time.monotonic() < end, "nothing moves"
        time.sleep(0.005)


def assert_at_rest(path, wire):
    """It was halted, nothing was commanded since, and no joint moves."""
    lines = trace(path)
    assert any(line["do"] == "halt" for line in lines), "never halted"
    last = max(number for number, line in enumerate(lines) if line["do"] == "halt")
    end = time.monotonic() + STILL
    while time.monotonic() < end:
        later = [line for line in trace(path)[last:] if line["do"] in ("move", "drive", "begin")]
        assert not later, f"commanded after it was halted: {later}"
        time.sleep(0.02)
    motors = wire.ask("ovos.tools.invoke", {"name": "motor_status", "args": {"subsystem": "all"}})["result"]["data"]["motors"]
    assert motors and not any(motor["moving"] for motor in motors.values()), motors
