"""Has no toolbox in its hello, and offers some when the service has said that it stays and a file allows it."""
import os
import threading
import time

from company import Company

FOLDER = os.environ["TMPDIR"]


class Returns(Company):
    def hello(self):
        self.later, self.ids = self.ids, []
        super().hello()

    def on_beat(self, order):
        super().on_beat(order)
        later, self.later = self.later, []
        if later:
            open(f"{FOLDER}/company_stays_{os.getpid()}", "w").close()
            threading.Thread(target=self.wait, args=[later], daemon=True).start()

    def wait(self, later):
        while not os.path.exists(f"{FOLDER}/company_may_offer"):
            time.sleep(0.01)
        self.offer(later)


Returns().run()
