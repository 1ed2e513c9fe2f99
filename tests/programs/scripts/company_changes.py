"""Is several toolboxes when it is started for the first time, and one after that."""
import os

from company import Company


class Changes(Company):
    def hello(self):
        mark = os.environ["TMPDIR"] + "/company_was_started"
        if os.path.exists(mark):
            self.features = []
        open(mark, "w").close()
        super().hello()


Changes().run()
