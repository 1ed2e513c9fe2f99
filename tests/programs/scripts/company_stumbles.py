"""Ends before its hello when it is started for the second time."""
import os

from company import Company


class Stumbles(Company):
    def hello(self):
        marks = [os.environ["TMPDIR"] + f"/company_start_{number}" for number in (1, 2)]
        new = [mark for mark in marks if not os.path.exists(mark)]
        if new:
            open(new[0], "w").close()
        if new == marks[1:]:
            os._exit(5)
        super().hello()


Stumbles().run()
