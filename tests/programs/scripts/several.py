"""Is two toolboxes, without the feature for it."""
from program import Program


class Several(Program):
    def hello(self):
        both = [{"id": self.id}, {"id": self.id + "-2"}]
        self.say("hello", protocol=2, version="1", features=[], toolboxes=both)


Several().run()
