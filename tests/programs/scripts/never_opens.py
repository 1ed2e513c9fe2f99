"""Hangs while it is opened, and leaves a process in its group."""
import os
import subprocess
import threading

from program import Program


class NeverOpens(Program):
    def on_open(self, order):
        child = subprocess.Popen(["sleep", "1000"])
        with open(os.environ["LEFT"] + ".new", "w") as left:
            left.write(str(child.pid))
        os.rename(os.environ["LEFT"] + ".new", os.environ["LEFT"])
        threading.Event().wait()


NeverOpens().run()
