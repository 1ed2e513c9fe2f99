"""Says why it can be no toolbox."""
from program import Program


class Refusing(Program):
    def hello(self):
        self.say("hello", protocol=self.protocol, version="1", features=[], refusal="no arm is connected; connect one")


Refusing().run()
