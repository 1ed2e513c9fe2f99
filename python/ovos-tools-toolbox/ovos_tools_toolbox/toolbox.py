"""The ToolBox: tools that OPM loaders find, mirrored from the service."""
import json
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from ovos_bus_client.message import Message, dig_for_message
from ovos_plugin_manager.templates.agent_tools import AgentTool, ToolBox, ToolOutput
from ovos_tools_client import CallResult, ConfirmationRequired, ToolsError
from ovos_utils.log import LOG

from .later import tools as later_tools
from .models import Arguments, Output, arguments_model
from .prompt import PROMPT, described
from .service import Service
from .toolset import Tool, Toolset
from .voice import Unasked, Voice

TOOLBOX_ID = "ovos-tools-toolbox"
KEYS = {"tools", "toolboxes", "effects", "audience", "timeout_ms", "ask_by_voice", "schedule"}
#: Programs that host toolboxes for a tools service. Mirrored there, the service would offer each of its tools twice.
HOSTS = ("ovos_tools_python", "ovos_phal_plugin_tools")
#: Seconds for which the list of tools is believed without asking the service whether it changed.
BELIEVED = 5.0
#: How many frames of the call stack are searched for the user's request; a persona's loop has about 20.
STACK = 100
#: How long an emergency stop is waited for, in seconds, and how long `stop_moving` waits for what moves to rest.
STOP_WAIT = 5.0

NOTHING: Dict[str, Any] = {"type": "object", "properties": {}}


class OVOSToolsToolBox(ToolBox):
    """All tools of the service that the configuration permits, and two stops that are always there.

    Config: `tools`, `toolboxes`, `effects` with `allow` and `deny` each; `audience`; `timeout_ms` of a call; `ask_by_voice`; `schedule`. A wrong value raises
    ValueError, so that the loader leaves the toolbox out rather than offer too much.
    """

    def __init__(self, config: Optional[Dict[str, Any]] = None, bus: Any = None):
        config = config or {}
        self._toolset = Toolset(config)
        self._timeout_ms = config.get("timeout_ms")
        if self._timeout_ms is not None and (isinstance(self._timeout_ms, bool) or not isinstance(self._timeout_ms, int)
                                             or self._timeout_ms <= 0):
            raise ValueError(f"`timeout_ms` is {self._timeout_ms!r}; expected a whole number of milliseconds")
        self._asks_by_voice = config.get("ask_by_voice", True)
        if not isinstance(self._asks_by_voice, bool):
            raise ValueError(f"`ask_by_voice` is {self._asks_by_voice!r}; expected true or false")
        self._schedules = config.get("schedule", False)
        if not isinstance(self._schedules, bool):
            raise ValueError(f"`schedule` is {self._schedules!r}; expected true or false")
        if unknown := sorted(set(config) - KEYS):
            LOG.warning(f"unknown keys in the section {TOOLBOX_ID}: {', '.join(unknown)}; known: {', '.join(sorted(KEYS))}")
        self._hosted = any(host in sys.modules for host in HOSTS)
        if self._hosted:
            LOG.warning(f"{TOOLBOX_ID} does not load in a tools service, whose own tools it offers")
        self._voice = Voice(lambda: self._service.bus)
        self._service = Service(None if self._hosted else bus, self._voice.abort)
        self._refreshing = threading.RLock()
        self._own = {} if self._hosted else self._own_tools()
        self._mirrored: Dict[str, AgentTool] = {}
        self._of_service: Dict[str, Tool] = {}
        self._seen: Any = None
        self._changes = -1
        self._asked = float("-inf")
        super().__init__(TOOLBOX_ID, config=config, bus=bus)

    # -- the bus --

    def bind(self, bus: Any) -> None:
        """Speaks through this bus. Answers nothing on it: the service answers `ovos.persona.tools.*` for its tools itself."""
        self.bus = bus
        if not self._hosted:
            self._voice.close()
            self._service.use(bus)

    def unbind(self) -> None:
        """As `close`."""
        self.close()
        self.bus = None

    def stop(self) -> None:
        """Ends the calls that are under way; what they move comes to rest."""
        self._service.cancel_all()

    def close(self) -> None:
        """Ends the calls that are under way, and leaves the bus."""
        self._voice.close()
        self._service.close()

    # -- the tools --

    @property
    def tools(self) -> Dict[str, AgentTool]:
        """The tools at this moment; those that were last seen where the service does not answer."""
        with self._refreshing:
            if self._is_stale():
                self._renew()
            return {**self._own, **self._mirrored}

    @tools.setter
    def tools(self, tools: Dict[str, AgentTool]) -> None:
        """The base class hands back what `discover_tools` returned, which is known here."""

    def get_tool(self, name: str) -> Optional[AgentTool]:
        """The tool of this name. A stop waits for no list."""
        return self._own.get(name) or super().get_tool(name)

    def discover_tools(self) -> List[AgentTool]:
        """The tools at this moment. Waits a few seconds for a service that does not answer."""
        with self._refreshing:
            self._renew()
            return [*self._own.values(), *self._mirrored.values()]

    def _is_stale(self) -> bool:
        """Whether the list has to be asked for again."""
        if self._hosted:
            return False
        since = time.monotonic() - self._asked
        if self._seen is not None and self._changes != self._service.changes:
            return True
        if since < BELIEVED:
            return False
        self._asked = time.monotonic()
        try:
            return self._loaded() != self._seen
        except ToolsError as error:
            LOG.warning(f"the list of tools may be out of date: {error}")
            return False

    def _renew(self) -> None:
        """Asks for the list; keeps the last one where the service does not answer."""
        if self._hosted:
            return
        self._asked = time.monotonic()
        self._seen = None
        try:
            changes, seen = self._service.changes, self._loaded()
            exported = self._service.client.export("openai", detail=True)
            tools, nameless = self._toolset.select(exported, set(self._own), self.toolbox_id)
            if nameless:
                LOG.warning(f"not mirrored, because their names are taken or too long for models: {', '.join(nameless)}")
            self._changes, self._seen = changes, seen
            self._of_service = {tool.shown: tool for tool in tools}
            self._mirrored = {tool.shown: self._agent_tool(tool) for tool in tools}
            self._warn_of_size()
        except ToolsError as error:
            LOG.warning(f"the list of tools may be out of date: {error}")

    def _warn_of_size(self) -> None:
        """Says that a prompt is large: a model with many tools is slow, and forgets some. Nothing is left out for it."""
        sizes = {name: len(json.dumps(described(tool), indent=2)) for name, tool in self._mirrored.items()}
        total = sum(sizes.values())
        if total > PROMPT:
            largest = ", ".join(sorted(sizes, key=sizes.__getitem__, reverse=True)[:3])
            LOG.warning(f"the tools take {total / 1000:.0f} kB of the prompt, more than {PROMPT / 1000:.0f} kB (the largest are {largest}); "
                        f"`toolboxes`, `tools` and `effects` in the section {TOOLBOX_ID} say which are needed")

    def _loaded(self) -> Any:
        """What changes when the tools do."""
        status = self._service.client.status()
        return status["service"]["pid"], [
            (toolbox["toolbox_id"], toolbox["state"], toolbox.get("generation"), toolbox.get("tools"))
            for toolbox in status["toolboxes"]
        ]

    def _agent_tool(self, tool: Tool) -> AgentTool:
        return AgentTool(
            name=tool.shown,
            description=tool.description,
            argument_schema=arguments_model(tool.shown, tool.arguments),
            output_schema=Output,
            tool_call=lambda arguments: self._call(tool, arguments),
        )

    @property
    def tool_json_list(self) -> List[Dict[str, Any]]:
        """What loops put into the prompt: names, texts and arguments, the arguments as one line each. JSON Schemas would be three times
        as long there, and the schemas of outputs thirty times.
        """
        return [described(tool) for tool in self.tools.values()]

    @property
    def openai_tools(self) -> List[Dict[str, Any]]:
        """What loops give to a model that calls tools by itself: its JSON Schemas are those of the service."""
        return self.tools_to_openai_spec([
            {"name": tool.name, "description": tool.description, "argument_schema": tool.argument_schema.model_json_schema()}
            for tool in self.tools.values()
        ])

    # -- a call --

    def call_tool(self, name: str, tool_kwargs: Any) -> ToolOutput:
        """As in the base class, but an error keeps the text of the service, from which a model learns what to do instead."""
        try:
            return super().call_tool(name, tool_kwargs)
        except RuntimeError as error:
            if isinstance(error.__cause__, ToolsError):
                raise error.__cause__ from None
            raise

    def _call(self, tool: Tool, arguments: Arguments) -> ToolOutput:
        request_of = dig_for_message(STACK)

        def call(**more: Any) -> CallResult:
            timeout = self._timeout_ms / 1000 if self._timeout_ms is not None else None
            return self._service.call(tool.name, arguments.model_dump(), tool.effect, request_of, toolbox_id=tool.toolbox_id,
                                      timeout=timeout, **more)

        try:
            result = call()
        except ConfirmationRequired as required:
            result = self._confirm(required, request_of, call)
        return Output.model_validate(result.result)

    def _confirm(self, required: ConfirmationRequired, request_of: Optional[Message],
                 call: Callable[..., CallResult]) -> CallResult:
        """The result of a call that the user confirms by voice. The token comes from the service and the yes from the user's next turn;
        neither passes through the model.
        """
        confirmation = required.confirmation
        try:
            if not self._asks_by_voice:
                raise Unasked("`ask_by_voice` is off")
            answer = self._voice.ask(confirmation.question, request_of)
        except Unasked as why:
            raise ToolsError(_waits(required, str(why))) from None
        self._service.check_goes_on("write", request_of)
        if answer.yes:
            try:
                return call(confirm=confirmation.token)
            except ConfirmationRequired as again:
                raise ToolsError(_waits(again, "what it would do has changed since the user said yes")) from None
        if answer.yes is None and answer.words is not None:
            raise ToolsError(f"ConfirmationRequired: the user was asked {json.dumps(confirmation.question, ensure_ascii=False)} and said "
                             f"{json.dumps(answer.words, ensure_ascii=False)}, which is neither yes nor no. It did not run. Answer the user.")
        try:
            call(decline=confirmation.token)
        except ToolsError as refused:
            said = "did not answer" if answer.words is None else "said no"
            raise ToolsError(f"{refused}. The user was asked {json.dumps(confirmation.question, ensure_ascii=False)} and {said}. It did not "
                             "run. Do not call it again; answer the user.", refused.kind) from None
        raise AssertionError("a declined call has no result")

    # -- the stops --

    def _own_tools(self) -> Dict[str, AgentTool]:
        def own(name: str, description: str, run: Any) -> AgentTool:
            return AgentTool(name, description, arguments_model(name, NOTHING), Output,
                             lambda _arguments: Output.model_validate({"message": run()}))

        tools = (
            own("emergency_stop",
                "Stop every machine at once (emergency stop). Use it at any sign of danger; never wait or ask first. Nothing moves "
                "until an operator lifts it: `ovos-tools status` shows how.",
                self._emergency_stop),
            own("stop_moving",
                "Cancel the calls that were started here and bring what they move to rest. Use it when the user says stop, wait or "
                "cancel. Nothing stays locked: tools can be called again.",
                self._stop_moving),
        )
        later = tuple(later_tools(self._service, lambda name: self._of_service.get(name), lambda: dig_for_message(STACK)))
        return {tool.name: tool for tool in (*tools, *(later if self._schedules else ()))}

    def _emergency_stop(self) -> str:
        advice = "Tell the user at once to use the machine's own switch."
        try:
            stopped = self._service.client.emergency_stop(wait=STOP_WAIT)
        except ToolsError as error:
            raise ToolsError(f"The emergency stop is NOT confirmed: {error}. {advice}") from None
        if unsure := [f"{one['toolbox_id']} ({one.get('error', 'no reason')})" for one in stopped if not one["ok"]]:
            raise ToolsError(f"Everything was told to stop, but this is NOT confirmed: {', '.join(unsure)}. {advice}")
        return "Everything is stopped, and stays stopped until an operator lifts the stop; `ovos-tools status` shows how."

    def _stop_moving(self) -> str:
        before = self._service.running
        try:
            self._service.stop_session()
        except ToolsError as error:
            raise ToolsError(f"Nothing was stopped: {error}. Use emergency_stop.") from None
        if running := self._service.wait_until_ended(STOP_WAIT):
            raise ToolsError(f"{running} of {before} calls are still running: they may be bringing a machine to safety. Use "
                            "emergency_stop if anything must stand still now.")
        return f"Stopped: {before} calls that were running here." if before else "Nothing was running here."


def _waits(required: ConfirmationRequired, why: str) -> str:
    """A call that waits for a person, as a model is told it. The token that confirms it is for people, not for models."""
    confirmation = required.confirmation
    note = f" {confirmation.note}." if confirmation.note else ""
    return (f"{required}\nIt did not run: it needs approval, and {why}. Tell the user to run `ovos-tools approve "
            f"{confirmation.id}` on the service's machine within {confirmation.expires_ms // 1000} s; then call it again with the same "
            f"arguments.{note}")
