"""The published ovos-bus-client on a bus that is not the published one: it must not notice.

The bus's address comes from the environment's mycroft.conf, as for any client. Prints `RESTART THE BUS` when
the caller has to do so, and ends with status 0 when everything held.
"""
import threading
from itertools import count

from ovos_bus_client import Message, MessageBusClient

CLIENTS = 12
DEADLINE = 30


def main():
    clients = [MessageBusClient() for _ in range(CLIENTS)]
    for client in clients:
        client.run_in_thread()
    for client in clients:
        assert client.connected_event.wait(DEADLINE), "a client could not connect"

    everybody_hears_everybody(clients, "first.round")
    first, second = clients[:2]
    answers_come_back(first, second)
    odd_payloads_survive(first, second)
    reconnects(clients)
    everybody_hears_everybody(clients, "second.round")
    answers_come_back(second, first)
    print("the bus client noticed nothing")


def everybody_hears_everybody(clients, topic):
    """Every client hears every client's message once, its own included."""
    heard = [[] for _ in clients]
    done = [threading.Event() for _ in clients]

    def listen(i):
        def handler(message):
            heard[i].append(message.data["from"])
            if len(heard[i]) == len(clients):
                done[i].set()
        return handler

    for i, client in enumerate(clients):
        client.on(topic, listen(i))
    for i, client in enumerate(clients):
        client.emit(Message(topic, {"from": i}))
    for i, event in enumerate(done):
        assert event.wait(DEADLINE), f"client {i} heard only {heard[i]}"
        assert sorted(heard[i]) == list(range(len(clients))), heard[i]
    # Whatever would come twice is in front of these answers.
    answers_come_back(clients[0], clients[-1])
    assert all(len(h) == len(clients) for h in heard), "a message came twice"


def answers_come_back(asker, answerer, rounds=count()):
    # A topic of its own: everybody hears every answer, and the client takes the first one that bears the name.
    topic = f"interop.sum.{next(rounds)}"

    def answer(message):
        answerer.emit(message.response({"sum": message.data["a"] + message.data["b"]}))

    answerer.on(topic, answer)
    context = {"source": "asker", "destination": ["answerer"], "session": {"session_id": "kitchen", "site_id": "x"}}
    for n in range(5):
        reply = asker.wait_for_response(Message(topic, {"a": n, "b": 2}, context), timeout=DEADLINE)
        assert reply is not None and reply.data == {"sum": n + 2}, reply and reply.serialize()
        assert (reply.context["source"], reply.context["destination"]) == ("answerer", "asker"), reply.context
        assert reply.context["session"]["session_id"] == "kitchen", reply.context


def odd_payloads_survive(sender, hearer):
    for n, value in enumerate(["naïve ☃ 工具 🤖 \u2028\u0000", 10 ** 40, -0.0, 1e300, [], {}, None, {"": [None, {"a": [1.5]}]},
                               "x" * 3_000_000]):
        got, heard = [], threading.Event()
        topic = f"interop.payload.{n}"
        hearer.once(topic, lambda message: (got.append(message.data["value"]), heard.set()))
        sender.emit(Message(topic, {"value": value}))
        assert heard.wait(DEADLINE), f"payload {n} did not arrive"
        assert got == [value], f"payload {n} changed"


def reconnects(clients):
    """The bus goes away and comes back; every client is back by itself."""
    closed, opened = [], []
    for client in clients:
        gone, back = threading.Event(), threading.Event()
        client.on("close", lambda *_, e=gone: e.set())
        client.on("error", lambda *_, e=gone: e.set())
        client.on("open", lambda *_, e=back: e.set())
        closed.append(gone)
        opened.append(back)
    print("RESTART THE BUS", flush=True)
    for event in closed:
        assert event.wait(DEADLINE), "a client did not notice that the bus went away"
    for event in opened:
        assert event.wait(2 * DEADLINE), "a client did not come back"


if __name__ == "__main__":
    main()
