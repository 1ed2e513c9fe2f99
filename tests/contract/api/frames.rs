//! Events and questions of toolboxes, and malformed frames.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::api::{INVOKE, assert_covers_every_topic, start_slow, world};
use crate::support::contract::expect;

#[test]
fn events_reach_the_bus() {
    let (_world, mut client) = world();
    client.invoke(
        "emit_event",
        json!({"kind": "low_battery", "severity": "warning", "data": {"level": 0.1}}),
    );
    let event = client.until("an event", |frame| frame["type"] == "ovos.tools.event");
    expect(
        "event",
        &json!({"toolbox_id": "testbed", "kind": "low_battery", "severity": "warning", "data": {"level": 0.1}, "ts": "*"}),
        &event["data"],
    );
}

#[test]
fn toolboxes_ask_and_listen_on_the_bus() {
    let (_world, mut client) = world();
    let asking = client.send(
        INVOKE,
        json!({"name": "ask", "args": {"data": {"what": "time"}, "timeout_ms": 30_000}}),
    );
    let question = client.until("the question", |frame| frame["type"] == "testbed.question");
    assert_eq!(question["data"], json!({"what": "time"}));
    let session = &question["context"]["session"]["session_id"];
    let answer = |session: &Value, time: &str| {
        json!({"type": "testbed.question.response", "data": {"time": time},
               "context": {"source": "contract test", "session": {"session_id": session}}})
        .to_string()
    };
    client.say(&answer(&json!("another"), "wrong"));
    client.say(&answer(session, "noon"));
    expect(
        "ask",
        &json!({"name": "ask", "result": {"answer": {"time": "noon"}}}),
        &client.answer(asking),
    );
    let unanswered = client.invoke("ask", json!({"timeout_ms": 20}));
    expect(
        "no answer comes",
        &json!({"name": "ask", "error": "~no answer to `testbed.question` came within 20 ms"}),
        &unanswered,
    );

    client.send("testbed.message", json!({"n": 1}));
    let last = (0..1000)
        .map(|_| client.invoke("last_message", json!({})))
        .find(|answer| answer["result"]["count"] != 0);
    expect(
        "subscription",
        &json!({"name": "last_message", "result": {"topic": "testbed.message", "data": {"n": 1}, "count": 1}}),
        &last.expect("the message arrives"),
    );
}

#[test]
fn requests_that_cannot_be_read_get_an_error() {
    let (_world, mut client) = world();
    let deep = format!("{}{}", r#"{"a":"#.repeat(200), "1".to_owned() + &"}".repeat(200));
    let rows = [
        (INVOKE, json!({"name": "", "error": "~nested 2"})),
        ("ovos.tools.plan", json!({"name": "", "error": "~nested 2"})),
        (
            "ovos.tools.get",
            json!({"error": "~ValueError: the request's data cannot be read: \"data\" is nested 200 levels deep"}),
        ),
        ("ovos.tools.export", json!({"error": "~nested 2"})),
        (
            "ovos.tools.run",
            json!({"ok": false, "error": "~nested 2", "steps": []}),
        ),
        (
            "ovos.tools.cancel",
            json!({"call_id": "", "cancelled": false, "state": "unknown", "error": "~nested 2"}),
        ),
        (
            "ovos.tools.resume",
            json!({"toolboxes": [{"toolbox_id": "", "ok": false, "error": "~nested 2"}]}),
        ),
        (
            "ovos.persona.tools.testbed.call",
            json!({"toolbox_id": "testbed", "error": "~nested 2"}),
        ),
        // These topics need no data.
        ("ovos.tools.list", json!({"tools": "*"})),
        ("ovos.tools.status", json!({"...": 0, "calls": []})),
        (
            "ovos.tools.reload",
            json!({"tools": "*", "loaded": "*", "total_tools": "*"}),
        ),
        (
            "ovos.persona.tools.discover",
            json!({"toolbox_id": "*", "tools": "*"}),
        ),
        ("mycroft.ovos_tools.is_alive", json!({"status": true})),
        ("mycroft.ovos_tools.is_ready", json!({"status": true})),
        // A stop is served in any case.
        (
            "ovos.tools.stop",
            json!({"toolboxes": [{"...": 0, "toolbox_id": "testbed"}, {"...": 0, "toolbox_id": "testbed_dup"}]}),
        ),
    ];
    // A call names its toolbox in its data or in its topic; without one no service answers. It is in the table below.
    let topics = rows.iter().map(|(topic, _)| *topic);
    assert_covers_every_topic(
        "the table of requests that cannot be read",
        topics.chain(["ovos.persona.tools.call"]),
    );
    for (topic, expected) in rows {
        let context = client.context();
        client.say(&format!(
            r#"{{"type":"{topic}","data":{deep},"context":{context}}}"#
        ));
        let n = client.last();
        expect(topic, &expected, &client.answer(n));
    }
    // Values that are not nested can be read.
    let read =
        format!(r#"{{"name":"echo","toolbox_id":"testbed","call_id":"deep","stop_id":"s","args":{deep}}}"#);
    let rows = [
        (
            INVOKE,
            json!({"name": "echo", "call_id": "deep", "error": "~nested 2"}),
        ),
        (
            "ovos.tools.plan",
            json!({"name": "echo", "call_id": "deep", "error": "~nested 2"}),
        ),
        (
            "ovos.persona.tools.call",
            json!({"toolbox_id": "testbed", "call_id": "deep", "error": "~nested 2"}),
        ),
        (
            "ovos.tools.cancel",
            json!({"call_id": "deep", "cancelled": false, "state": "unknown", "error": "~nested 2"}),
        ),
        (
            "ovos.tools.resume",
            json!({"toolboxes": [{"toolbox_id": "testbed", "ok": false, "error": "~nested 2"}], "call_id": "deep"}),
        ),
    ];
    for (topic, expected) in rows {
        let context = client.context();
        client.say(&format!(
            r#"{{"type":"{topic}","data":{read},"context":{context}}}"#
        ));
        let n = client.last();
        expect(topic, &expected, &client.answer(n));
    }
    let context = client.context();
    client.say(&format!(
        r#"{{"type":"{INVOKE}","data":{{"name":"testbed__stop","args":{deep}}},"context":{context}}}"#
    ));
    let n = client.last();
    let stopped = client.answer(n);
    assert_eq!(
        stopped["result"]["success"], true,
        "a stop is not refused for its arguments: {stopped}"
    );
    for topic in ["ovos.persona.tools.call", "ovos.persona.tools.nope.call"] {
        let context = client.context();
        client.say(&format!(
            r#"{{"type":"{topic}","data":{deep},"context":{context}}}"#
        ));
        let n = client.last();
        client.invoke("ping", json!({}));
        assert_eq!(
            client.answered(n),
            None,
            "{topic} may be meant for another service"
        );
    }
}

#[test]
fn what_is_too_large_gets_a_small_error() {
    let (world, mut client) = world();
    let text = "x".repeat(9 << 20);
    let answer = client.invoke("echo", json!({ "text": text }));
    expect(
        "a result above max_result_bytes",
        &json!({"name": "echo", "error": "~8388608"}),
        &answer,
    );
    // The name would be in the answer twice.
    let name = "n".repeat(13 << 20);
    let answer = client.ask(INVOKE, json!({ "name": name, "call_id": "large" }));
    expect(
        "an answer above max_msg_size",
        &json!({"name": "", "call_id": "large", "error": "~websocket.max_msg_size"}),
        &answer,
    );
    let mut other = world.client();
    let slow = start_slow(&mut client, "s");
    let frame = json!({"type": INVOKE, "data": {"name": "x".repeat(26 << 20)}, "context": {}});
    // The bus closes the connection of the sender; the error may come during the write.
    let _ = other.put(Message::text(frame.to_string()));
    other.until_closed();
    client.ask("ovos.tools.cancel", json!({"call_id": "s"}));
    expect(
        "slow",
        &json!({"...": 0, "error": "~CancelledError"}),
        &client.answer(slow),
    );
}

#[test]
fn malformed_frames_do_not_disturb_a_call() {
    let (world, mut client) = world();
    let slow = start_slow(&mut client, "s");
    let levels = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let frames = [
        Message::text(""),
        Message::text("hello"),
        Message::text("{"),
        Message::text("[]"),
        Message::text("null"),
        Message::text(r#"{"type":5}"#),
        Message::text(r#"{"type":"ovos.tools.cancel","data":[],"context":{}}"#),
        Message::text(r#"{"type":"ovos.tools.cancel","data":{"call_id":"s"},"context":[]}"#),
        Message::text(r#"{"type":"ovos.tools.cancel","data":{"call_id":"s"},"context":{"session":5}}"#),
        Message::text(r#"{"type":"ovos.tools.cancel","data":{"call_id":"s"}"#),
        Message::text(r#"{"type":"ovos.tools.cancel","data":{"call_id":"s","x":NaN}}"#),
        Message::text(r#"{"type":"ovos.tools.cancel","type":"ovos.tools.nothing","data":{"call_id":"s"}}"#),
        Message::text(format!(
            r#"{{"type":"ovos.tools.invoke","data":{}}}"#,
            levels(100_000)
        )),
        Message::text(format!(
            r#"{{"type":"ovos.tools.invoke","data":{{"x":{}}}}}"#,
            levels(100_000)
        )),
        Message::text(format!(
            r#"{{"type":"ovos.tools.cancel","data":{{"call_id":"s"}},"context":{{"x":{}}}}}"#,
            levels(100_000)
        )),
        Message::text(levels(100_000)),
        Message::binary(vec![0, 255, 254]),
        Message::Frame(Frame::message(vec![b'{'], OpCode::Data(Data::Text), false)),
    ];
    for frame in frames {
        let what = format!("{frame:.80?}");
        // A client of its own, because the bus may close the connection of the sender.
        let mut other = world.client();
        let _ = other.put(frame);
        let ping = client.invoke("ping", json!({}));
        expect(&what, &json!({"name": "ping", "result": {"pong": true}}), &ping);
        assert_eq!(client.answered(slow), None, "{what}");
    }

    let context = client.context();
    let whole = json!({"type": INVOKE, "data": {"name": "echo", "args": {"text": "é"}}, "context": context})
        .to_string()
        .into_bytes();
    for (at, byte) in whole.iter().enumerate() {
        let kind = if at == 0 { Data::Text } else { Data::Continue };
        let last = at + 1 == whole.len();
        let frame = Frame::message(vec![*byte], OpCode::Data(kind), last);
        client.put(Message::Frame(frame)).unwrap();
    }
    let n = client.last();
    expect(
        "fragments",
        &json!({"name": "echo", "result": {"text": "é"}}),
        &client.answer(n),
    );

    client.ask("ovos.tools.cancel", json!({"call_id": "s"}));
    expect(
        "slow",
        &json!({"...": 0, "error": "~CancelledError"}),
        &client.answer(slow),
    );
}
