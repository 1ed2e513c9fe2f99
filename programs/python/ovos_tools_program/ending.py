"""The signals that end a program in order."""

import signal

#: What a person, a terminal that closes or a service manager sends to end a program.
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
