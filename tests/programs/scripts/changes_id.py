"""Says that it is another toolbox when it is started for the second time."""
import os

from program import Program


class Changes(Program):
    def __init__(self):
        super().__init__()
        mark = os.environ["TMPDIR"] + "/was_started"
        if os.path.exists(mark):
            self.id = "elsewhere"
        open(mark, "w").close()


Changes().run()
