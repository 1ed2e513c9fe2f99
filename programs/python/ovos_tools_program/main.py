"""How a program begins: the sockets, the hello, the guard; or the safe stop."""

from __future__ import annotations

import socket
import sys
from typing import Any, Callable, Dict, List, NoReturn, Optional, Union

from . import frames
from .box import Box
from .guard import split
from .program import Program
from .safe_stop import SafeStop, read_config, stop_safely

#: Where the service puts the sockets.
DATA, CONTROL = 3, 4
Manifests = Union[Dict[str, Any], List[Dict[str, Any]]]


def main(
    make: Callable[[str], Box], manifests: Manifests, safe_stop: Optional[SafeStop] = None,
    started: Optional[Callable[[Program], None]] = None,
) -> NoReturn:
    """Serves one toolbox (`manifests` is its manifest), or several (a list) with the feature `toolboxes`.

    One toolbox has a guard, a parent that serves the control lane. Several have none: they move nothing.
    """
    if "--safe-stop" in sys.argv[1:]:
        sys.exit(stop_safely(safe_stop or (lambda _: None), read_config()))
    try:
        data, control = socket.socket(fileno=DATA), socket.socket(fileno=CONTROL)
    except OSError:
        sys.exit(
            f"{sys.argv[0]}: do not run this program directly: ovos-tools starts it for an entry of service.programs (file "
            f"descriptors {DATA} and {CONTROL} must be sockets). To try it by hand, use ovos_tools_program.testing."
        )
    several = isinstance(manifests, list)
    data.sendall(frames.encode("notice", "hello", hello_of(manifests)))
    own_id = None if isinstance(manifests, list) else manifests["id"]
    if not several:
        control = split(data, control, safe_stop)
    program = Program(make, own_id, data, control, guarded=not several)
    if started is not None:
        started(program)
    program.run()


def hello_of(manifests: Manifests) -> Dict[str, Any]:
    """The body of `hello`: one manifest for one toolbox, a list of them with the feature `toolboxes`."""
    several = isinstance(manifests, list)
    toolboxes = manifests if isinstance(manifests, list) else [manifests]
    return {
        "protocol": frames.PROTOCOL,
        "version": "" if several else str(toolboxes[0].get("version", "")),
        "features": ["toolboxes"] if several else [],
        "toolboxes": toolboxes,
    }
