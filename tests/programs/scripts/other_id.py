"""Is another toolbox than it may be."""
import sys

from program import Program


class Other(Program):
    def __init__(self):
        super().__init__()
        self.id = sys.argv[2]


Other().run()
