"""Offers only its first toolbox after it has died."""
import os

from company import Company


class Forgets(Company):
    def hello(self):
        # The first start is the look of the service at it, the second one stays.
        mark = os.environ["TMPDIR"] + "/company_starts"
        starts = os.path.getsize(mark) if os.path.exists(mark) else 0
        with open(mark, "a", encoding="ascii") as file:
            file.write("x")
        if starts >= 2:
            del self.ids[1:]
        super().hello()


Forgets().run()
