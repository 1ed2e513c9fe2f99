"""`python3 ovos_tools_python` (the folder) or `python3 -m ovos_tools_python`; see command.py."""

import os
import sys

if not __package__:
    # Started by the folder's path: the other package is beside it.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from ovos_tools_python.command import run

run()
