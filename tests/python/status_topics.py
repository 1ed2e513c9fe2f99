"""The status topics of a service that is ready: `status_topics.py URL NAME`, where NAME stands in its topics."""
import sys

from wire import Wire, context_key

url, name = sys.argv[1:]
wire = Wire(url)
for question in ["is_alive", "is_ready", "all_loaded"]:
    topic = f"mycroft.{name}.{question}"
    wire.send({"type": topic, "data": {}, "context": {"source": "boot", "destination": "tools", "n": question,
                                                      "session": {"session_id": "kitchen"}}})
    answer = wire.wait(lambda f: f["type"] == topic + ".response")
    assert answer["data"] == {"status": True}, answer
    assert answer["context"] == {"source": "tools", "destination": "boot", "n": question,
                                 "session": {"session_id": "kitchen"}}, answer

# No other service's topics are answered: on a device PHAL itself answers these, and both would.
for other in {"PHAL", "ovos_tools", "skills"} - {name}:
    wire.send({"type": f"mycroft.{other}.is_ready", "data": {}, "context": {"n": other}})
wire.fence()
others = [f for f in wire.heard if context_key(f, "n") in ("PHAL", "ovos_tools", "skills")]
assert not others, others
print("the status topics are answered")
