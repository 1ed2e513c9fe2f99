"""A media player with two titles, which answers the topics of ovos-media as ovos-media does; ovos-media itself plays nothing without a
backend. It does not obey while its title is `stubborn`. Prints `READY`: ovos_player.py."""
import threading

from ovos_bus_client import MessageBusClient

STOPPED, PLAYING, PAUSED = range(3)
LOADED, INVALID = 3, 8

state = {"player_state": STOPPED, "media_state": LOADED, "title": "", "artist": "Nobody"}
bus = MessageBusClient()
bus.run_in_thread()
assert bus.connected_event.wait(30), "no bus"


def to(**changes):
    def handle(_message):
        if state["title"] != "stubborn":
            state.update(changes)
    return handle


def play(message):
    media = message.data["media"]
    is_good = media["uri"].startswith("https://")
    state.update(player_state=PLAYING, media_state=LOADED if is_good else INVALID, title=media["title"])


bus.on("ovos.common_play.status", lambda message: bus.emit(message.response(dict(state))))
bus.on("ovos.common_play.play", play)
bus.on("ovos.common_play.pause", to(player_state=PAUSED))
bus.on("ovos.common_play.resume", to(player_state=PLAYING))
bus.on("ovos.common_play.stop", to(player_state=STOPPED))
bus.on("ovos.common_play.next", to(title="the next one"))
bus.on("ovos.common_play.previous", to(title="the one before"))
print("READY", flush=True)
threading.Event().wait()
