from ovos_tools_client import ToolsClient, ToolsError
from ovos_workshop.decorators import intent_handler
from ovos_workshop.skills.ovos import OVOSSkill


class WaveSkill(OVOSSkill):
    def initialize(self):
        self.tools = ToolsClient(self.bus, self.skill_id)

    @intent_handler("wave.intent")
    def wave(self, message):
        try:
            self.tools.call("wave", {"arm": "left"}, on_confirm=self.ask)
        except ToolsError as error:
            self.log.warning("no wave: %s", error)
            self.speak_dialog("cannot.wave")

    def ask(self, confirmation):
        """Asks the one who speaks; anything but a clear yes or no leaves the call waiting until it expires."""
        return {"yes": True, "no": False}.get(self.ask_yesno(confirmation.question))

    def can_stop(self, message):
        return self.tools.is_calling(message)

    def stop_session(self, session):
        return self.tools.cancel_all(session.session_id)

    def shutdown(self):
        self.tools.close()
