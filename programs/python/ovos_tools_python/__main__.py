"""`python3 ovos_tools_python` (the folder) or `python3 -m ovos_tools_python`; see command.py."""

import os
import sys

if not __package__:
    # Started by the folder's path: the other package is beside it.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

if sys.argv[1:] == ["--folders"]:
    from ovos_tools_python.folders import before_site

    # A path may have any bytes.
    sys.stdout.buffer.write(os.fsencode("\0".join(before_site())))
    sys.exit(0)

from ovos_tools_python.command import run  # noqa: E402

run()
