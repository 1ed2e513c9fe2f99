"""Toolboxes for ovos-tools in Python: a class, one decorator for each tool, and `run()`.

docs/protocol.md describes what this module speaks; README.md beside it is the page for authors.
"""

from .errors import Cancelled, ToolError
from .run import Context
from .schema import Field
from .toolbox import Toolbox
from .tools import Action, action, conclude, planned, tool

__all__ = ["Action", "Cancelled", "Context", "Field", "ToolError", "Toolbox", "action", "conclude", "planned", "tool"]
