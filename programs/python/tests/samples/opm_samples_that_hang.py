"""A module that does not get imported, for example because it waits for a server."""

import threading

threading.Event().wait()
