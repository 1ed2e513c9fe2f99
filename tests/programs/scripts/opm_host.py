"""Becomes programs/python/ovos_tools_python, which is in the folder that the second argument names."""
import sys

sys.path.insert(0, sys.argv.pop(2))
del sys.argv[1]

from ovos_tools_python.command import run

run()
