"""An OVOS device without hardware: the published ovos-audio, whose voice is silence, and the published plugin for the volume, whose
mixer is in here. Prints `READY`: ovos_device.py."""
import sys
import threading
import types
import wave

from ovos_audio.service import PlaybackService
from ovos_bus_client import MessageBusClient
from ovos_plugin_manager.templates.tts import TTS


class Silence(TTS):
    """Says everything in no time, except what it cannot say."""

    def get_tts(self, sentence, wav_file, *_args, **_kwargs):
        if "unspeakable" in sentence:
            raise RuntimeError("this voice does not say that")
        with wave.open(str(wav_file), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes(bytes(1600))
        return wav_file, None

    @property
    def available_languages(self):
        return {"en-US"}


class Mixer:
    """What the volume plugin finds in `alsaaudio`."""

    volume, mute = 70, 0

    def __init__(self, *_args):
        pass

    def switchcap(self):
        return ["Mute"]

    def getvolume(self):
        return [Mixer.volume]

    def setvolume(self, volume):
        Mixer.volume = volume

    def getmute(self):
        return [Mixer.mute]

    def setmute(self, mute):
        Mixer.mute = mute

    def getrange(self):
        return [0, 100]


bus = MessageBusClient()
bus.run_in_thread()
assert bus.connected_event.wait(30), "no bus"
voice = Silence(config={"module": "silence"})
service = PlaybackService(bus=bus, disable_ocp=True, tts=voice)
voice.init(bus, service.playback_thread)
service.daemon = True
service.start()
try:
    sys.modules["alsaaudio"] = types.SimpleNamespace(Mixer=Mixer, mixers=lambda: ["Master"])
    from ovos_PHAL_plugin_alsa import AlsaVolumeControlPlugin
except ImportError:
    pass  # It is not in the environment of the stable release.
else:
    AlsaVolumeControlPlugin(bus=bus)
print("READY", flush=True)
threading.Event().wait()
