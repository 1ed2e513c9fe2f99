"""The event loop of async tools: one for the process, on a thread of its own, made when it is needed first."""

from __future__ import annotations

import asyncio
import threading
from typing import Optional

_loop: Optional[asyncio.AbstractEventLoop] = None
_lock = threading.Lock()


def event_loop() -> asyncio.AbstractEventLoop:
    """The loop, running."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="async-tools", daemon=True).start()
        return _loop
