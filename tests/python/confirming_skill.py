from ovos_tools_client import CallResult, ToolsClient
from ovos_workshop.skills.ovos import OVOSSkill


class ToolSkill(OVOSSkill):
    def initialize(self):
        self.tools = ToolsClient(self.bus, self.skill_id)

    def call_tool(self, name, **args) -> CallResult:
        """Calls a tool, and asks the one who speaks where a person has to confirm it. Raises ToolsError where there is no result."""
        return self.tools.call(name, args, on_confirm=self.ask)

    def ask(self, confirmation):
        """True for a clear yes and False for a clear no; after anything else the call waits until it expires."""
        return {"yes": True, "no": False}.get(self.ask_yesno(confirmation.question))

    def can_stop(self, message):
        return self.tools.is_calling(message)

    def stop_session(self, session):
        return self.tools.cancel_all(session.session_id)

    def shutdown(self):
        self.tools.close()
