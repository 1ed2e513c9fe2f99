"""What python/ovos-phal-plugin-ovos-tools logs when ovos-PHAL starts it, over the bus of mycroft.conf."""
import sys
from pathlib import Path

from ovos_bus_client import MessageBusClient

PACKAGE = Path(__file__).parents[2] / "python" / "ovos-phal-plugin-ovos-tools"
sys.path.insert(0, str(PACKAGE))
import ovos_phal_plugin_ovos_tools as plugin  # noqa: E402

# A test has no service that takes longer to start.
plugin.WAIT = 2.0

bus = MessageBusClient()
bus.run_in_thread()
assert bus.connected_event.wait(30), "no bus"
handlers = len(bus.emitter.event_names())
# As ovos_PHAL.service.PHAL.load_plugins does it.
assert plugin.OVOSToolsWatch.validator.validate({})
look = plugin.OVOSToolsWatch(bus=bus, config={})
look.join(30)
assert not look.is_alive()
look.shutdown()
left = len(bus.emitter.event_names()) - handlers
assert left == 0, f"{left} handlers are left on the bus"
print("the plugin has looked")
bus.close()
