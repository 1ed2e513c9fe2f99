"""The tools of a running ovos-tools service, as a ToolBox for OVOS personas and agentic loops."""
from .toolbox import OVOSToolsToolBox

__all__ = ["OVOSToolsToolBox"]
