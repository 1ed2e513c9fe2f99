"""Says something else when it is started for the second time: that it is another toolbox, none, or one twice."""
import os
import sys

from program import Program


class Changes(Program):
    def __init__(self):
        super().__init__()
        mark = os.environ["TMPDIR"] + "/was_started_" + self.id
        self.changed = os.path.exists(mark)
        open(mark, "w").close()

    def hello(self):
        toolboxes = [{"id": self.id, **self.manifest}]
        if self.changed:
            toolboxes = {"nothing": [], "twice": toolboxes * 2}.get(sys.argv[-1], [{"id": "elsewhere"}])
        self.say("hello", protocol=self.protocol, version="1", features=[], toolboxes=toolboxes)


Changes().run()
