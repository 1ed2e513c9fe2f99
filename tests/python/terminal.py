"""Runs a program at a terminal of its own, where what comes from stdin is typed: terminal.py PROGRAM [ARGUMENT...]"""
import os
import pty
import sys

sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))
