"""A toolbox with the methods of OPM's that a host uses, for an interpreter without OPM."""

import os
import sys
import threading

EMPTY = {"type": "object", "properties": {}}


class Result(dict):
    def model_dump(self, mode):
        return dict(self)


class Box:
    toolbox_id = "TOOLBOX"
    names = ["version", "settings", "raises", "refuses", "not_a_number", "logs", "never"]

    def __init__(self, config=None, bus=None):
        self.config = config
        self.tools = {name: getattr(self, name) for name in self.names}

    @property
    def tool_json_list(self):
        return [
            {"name": name, "description": "A tool.", "argument_schema": EMPTY, "output_schema": EMPTY} for name in self.names
        ]

    def refresh_tools(self):
        pass

    def call_tool(self, name, args):
        if name == "refuses":
            raise ValueError(f"Tool input validation failed for '{name}' in ToolBox 'TOOLBOX'") from TypeError("no number")
        try:
            return Result(self.tools[name]())
        except LookupError as error:
            raise RuntimeError(f"Tool execution failed for '{name}' in ToolBox 'TOOLBOX'") from error

    def version(self):
        return {"version": "VERSION"}

    def settings(self):
        return {"config": self.config, "env": os.environ.get("OF_THE_SECTION")}

    def raises(self):
        raise LookupError("there is no moon")

    def refuses(self):
        """Its arguments are refused before it is called."""

    def not_a_number(self):
        return {"value": float("nan")}

    def logs(self):
        # As OVOS's logger writes: to standard output, with the level in the text.
        sys.stdout.write("2026-01-31 12:34:56.789 - OVOS - sample.tools:logs:7 - WARNING - the moon is low\nin the west\n")
        return {}

    def never(self):
        threading.Event().wait()
