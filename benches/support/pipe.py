"""Answers each line of its standard input, `[tool, arguments]`, with what that tool of an OPM toolbox returns.

    pipe.py ENTRY_POINT
"""
import importlib.metadata
import json
import os
import sys

# OVOS's logger writes to standard output.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
(point,) = [one for one in importlib.metadata.entry_points(group="opm.agents.toolbox") if one.name == sys.argv[1]]
box = point.load()(config={})
for line in iter(sys.stdin.readline, ""):
    tool, arguments = json.loads(line)
    answers.write(json.dumps(box.call_tool(tool, arguments).model_dump(mode="json")) + "\n")
    answers.flush()
