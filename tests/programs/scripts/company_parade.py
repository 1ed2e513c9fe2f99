"""Offers ever new toolboxes, none of which opens: a new list when those of the one before were tried."""
import threading
import time

from company import Company

MANY = 250


class Parade(Company):
    marches = False

    def on_beat(self, order):
        super().on_beat(order)
        if not self.marches:
            self.marches = True
            threading.Thread(target=self.march, daemon=True).start()

    def march(self):
        for first in range(0, 5 * MANY, MANY):
            tried = self.opened
            self.offer([*self.ids, *(f"fails-{number}" for number in range(first, first + MANY))])
            while self.opened < tried + MANY:
                time.sleep(0.01)


Parade().run()
