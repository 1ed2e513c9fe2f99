"""Has no toolbox in its hello, and offers some once the service has said that it stays."""
from company import Company


class Later(Company):
    def hello(self):
        self.later, self.ids = self.ids, []
        super().hello()

    def on_beat(self, order):
        super().on_beat(order)
        if self.later:
            self.offer(self.later)
            self.later = []


Later().run()
