"""The toolbox, in threads of the test."""

import unittest

from examples.greeter import Greeter
from ovos_tools_program.testing import Failed, Harness


class GreeterTest(unittest.TestCase):
    def test_it_greets(self) -> None:
        with Harness(Greeter) as greeter:
            self.assertEqual(greeter.call("greet", {"name": "Ada"})["text"], "Hello, Ada!")
            self.assertEqual(greeter.call("count", {"to": 2, "pause": 0.01}), {"result": 2})
            with self.assertRaises(Failed):
                greeter.call("greet", {})


if __name__ == "__main__":
    unittest.main()
