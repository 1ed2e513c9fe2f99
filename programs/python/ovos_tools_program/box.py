"""What `Served` needs of a toolbox, the author's or the interpreter's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional

if TYPE_CHECKING:
    from .host import Host
    from .run import Context


class Box:
    """A toolbox as the protocol sees it: JSON values in, JSON values out. Any method may raise."""

    #: The manifest: `id`, and what schemas/abi/manifest.json allows beside it.
    manifest: Dict[str, Any]
    #: Whether a cancelled run is answered at once, although its thread goes on.
    abandons: bool = False

    def functions(self) -> Dict[str, bool]:
        """What `opened` says: `plan`, `conclude`, `message`, `halt`, `safe_stop`. Asked after `open`."""
        return {}

    def open(self, config: Dict[str, Any], host: Host) -> None:
        """Opens the toolbox. Moves nothing."""

    def tools(self) -> List[Dict[str, Any]]:
        """The tools, as schemas/abi/tool.json describes them."""
        raise NotImplementedError

    def plan(self, tool: str, args: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        """The plan of a call; None if the tool has none."""
        return None

    def conclude(self, tool: str, args: Dict[str, Any], report: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        """`{"output": ...}` or `{"error": ...}` of a call; None if the tool has no conclusion."""
        return None

    def perform(self, context: Context, action: str, params: Dict[str, Any]) -> Any:
        """Runs an action on a thread of its own. May return an awaitable."""
        raise NotImplementedError

    def abandoned(self, threads: int) -> None:
        """A run was answered although its thread goes on; `threads` of them do now. Only where `abandons` is set."""

    def halt(self, subsystems: List[str], emergency: bool) -> None:
        """Sends the commands that end motion, and returns within 50 ms. Any thread."""

    def resume(self) -> None:
        """Raises if the emergency stop must not be lifted. Moves nothing. Any thread."""

    def message(self, topic: str, data: Dict[str, Any]) -> None:
        """Takes a bus message."""

    def may_close(self) -> None:
        """Raises if a reload must not close the toolbox now."""

    def close(self) -> None:
        """Closes the toolbox: joins every thread that it started."""
