"""Says half of its hello."""
import time

from program import Program, frame


class Half(Program):
    def hello(self):
        whole = frame("notice", "hello", {"protocol": 2, "toolboxes": [{"id": self.id}]})
        self.data.sendall(whole[: len(whole) // 2])
        time.sleep(3600)


Half().run()
