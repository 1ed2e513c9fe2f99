"""A service, then a bus, that is lost during a call: agents_lost.py. The caller does what is printed, while the call runs."""
from ovos_tools_client import ToolsError
from ovos_tools_toolbox import OVOSToolsToolBox

toolbox = OVOSToolsToolBox({})
ASSEMBLE = {"subsystems": ["left_arm"], "step_ms": 2, "steps": 100_000, "timeout_ms": 300_000}
for what, tool, arguments in [
    ("THE SERVICE", "slow", {"seconds": 300}),
    # The service ends what moves, and its answer reaches no client.
    ("THE BUS", "assemble", ASSEMBLE),
]:
    print(f"KILL {what}", flush=True)
    try:
        raise AssertionError(toolbox.call_tool(tool, arguments))
    except ToolsError as error:
        assert str(error).startswith("ConnectionError: ") and "may or may not have been carried out" in str(error), error
    print(f"LOST {what}", flush=True)
# What comes next works, as soon as the client of the bus is back.
while True:
    try:
        assert str(toolbox.call_tool("add", {"a": 1, "b": 2})) == '{"result": 3}'
        break
    except ToolsError as error:
        assert "ConnectionError: " in str(error), error
print("the toolbox outlives both")
toolbox.close()
