import queue
import uuid

from ovos_workshop.skills.ovos import OVOSSkill


class ToolSkill(OVOSSkill):
    def call_tool(self, message, name, **args):
        """Calls a tool. Where a person has to confirm the call, asks the one who speaks. None: there is no answer."""
        request = {"name": name, "args": args, "detail": True}
        answer = self.ask_service(message, request)
        if answer and (confirm := answer.get("confirm")):
            key = {"yes": "confirm", "no": "decline"}.get(self.ask_yesno(confirm["text"]))
            if key:
                answer = self.ask_service(message, {**request, key: confirm["token"]})
        return answer

    def ask_service(self, message, request):
        """The answer to this request: others are on the bus, too."""
        call_id, answers = str(uuid.uuid4()), queue.Queue()

        def heard(answer):
            if answer.data.get("call_id") == call_id:
                answers.put(answer.data)

        self.bus.on("ovos.tools.invoke.response", heard)
        try:
            self.bus.emit(message.forward("ovos.tools.invoke", {**request, "call_id": call_id}))
            return answers.get(timeout=60)
        except queue.Empty:
            return None
        finally:
            self.bus.remove("ovos.tools.invoke.response", heard)
