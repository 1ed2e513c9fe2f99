//! Conversations that are named on the bus: asked for twice, while the door ends, and what goes on after them.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::support::client::Client;
use crate::support::process::{DEADLINE, Process};
use crate::voice::speech::Line;
use crate::voice::stage::Stage;

const JOIN: &str = "ovos.tools.voice.join";

/// A door that waits for requests to join.
fn waiting(stage: &Stage) -> Process {
    let mut door = stage.door(&[]);
    door.until("a door that listens", |door| {
        let listens = "waiting for ovos.tools.voice.join";
        door.output().contains(listens).then_some(())
    });
    door
}

/// The answers to these requests, in this order.
fn answers(client: &mut Client, idents: &[String]) -> Vec<Value> {
    let mut found = vec![None; idents.len()];
    client.until("the answers", |frame| {
        let is_answer = frame["type"] == "ovos.tools.voice.join.response";
        let place = idents
            .iter()
            .position(|ident| frame["context"]["ident"] == ident.as_str());
        if let Some(place) = place.filter(|_| is_answer) {
            found[place] = Some(frame["data"].clone());
        }
        found.iter().all(Option::is_some).then_some(())
    });
    found.into_iter().flatten().collect()
}

#[test]
fn a_conversation_that_is_asked_for_twice_is_joined_once_and_both_are_told() {
    let mut stage = Stage::new(&json!({}));
    let _door = waiting(&stage);
    let request = json!({"dialect": "hume", "chat_id": "c7"});
    let joined = json!({"dialect": "hume", "chat_id": "c7", "joined": true});

    // The first dials, and the second waits for what becomes of that.
    let first = stage.client.send(JOIN, &request);
    let dialled = stage.speech.dialled();
    let second = stage.client.send(JOIN, &request);
    let line = Line::new(dialled);
    assert_eq!(
        answers(&mut stage.client, &[first, second]),
        [joined.clone(), joined.clone()]
    );
    line.tools();
    // A third one, of a conversation that is served.
    assert_eq!(stage.client.ask(JOIN, &request), joined);
    assert!(stage.speech.accept_within(Duration::from_millis(300)).is_none());
    line.call("a", "add", &json!({"a": 1, "b": 2}));
    line.result("a");
}

#[test]
fn a_request_that_waits_is_tried_when_the_first_one_fails() {
    let mut stage = Stage::new(&json!({}));
    let _door = waiting(&stage);
    let request = json!({"dialect": "hume", "chat_id": "c7"});
    let first = stage.client.send(JOIN, &request);
    let dialled = stage.speech.dialled();
    let second = stage.client.send(JOIN, &request);
    // Before the websocket is open.
    drop(dialled);
    let line = stage.speech.accept();
    let replies = answers(&mut stage.client, &[first, second]);
    assert!(
        replies[0]["error"]
            .as_str()
            .unwrap()
            .starts_with("RuntimeError: "),
        "{replies:?}"
    );
    assert_eq!(replies[1]["joined"], true, "{replies:?}");
    line.tools();
}

#[test]
fn a_join_under_way_is_answered_when_the_door_is_told_to_end() {
    let mut stage = Stage::new(&json!({}));
    let mut door = waiting(&stage);
    let request = json!({"dialect": "hume", "chat_id": "c7"});
    let request = stage.client.send(JOIN, &request);
    // The websocket never opens.
    let _dialled = stage.speech.dialled();
    door.signal(Signal::TERM);
    let replies = answers(&mut stage.client, &[request]);
    let error = replies[0]["error"].as_str().unwrap();
    assert!(
        error.starts_with("BusyError: the voice door is shutting down"),
        "{error}"
    );
    assert!(door.end_within(DEADLINE).success(), "{}", door.log());
}

#[test]
fn calls_that_move_nothing_go_on_after_a_conversation_for_as_long_as_the_door_runs() {
    let mut stage = Stage::new(&json!({}));
    let mut door = waiting(&stage);
    let request = json!({"dialect": "hume", "chat_id": "c7"});
    let request = stage.client.send(JOIN, &request);
    let line = stage.speech.accept();
    assert_eq!(answers(&mut stage.client, &[request])[0]["joined"], true);
    line.tools();
    line.call("short", "slow", &json!({"seconds": 5}));
    line.call("long", "slow", &json!({"seconds": 500}));
    stage.client.until_phases(&[("running", 2)]);
    line.close(CloseCode::Normal);
    door.until("the end of the conversation", |door| {
        door.output().contains("the conversation is over").then_some(())
    });
    // Longer than the end of a conversation waits for its calls; nothing is cancelled meanwhile.
    let ended = stage.client.until("an answer", |frame| {
        assert_ne!(frame["type"], "ovos.tools.cancel", "{frame}");
        (frame["type"] == "ovos.tools.invoke.response").then(|| frame["data"].clone())
    });
    assert_eq!(ended["result"]["seconds"], 5.0, "{ended}");
    stage.client.until_phases(&[("running", 1)]);
    // They end with the door.
    door.signal(Signal::TERM);
    stage.client.until("a cancel", |frame| {
        (frame["type"] == "ovos.tools.cancel").then_some(())
    });
    assert!(door.end_within(DEADLINE).success(), "{}", door.log());
    stage.client.until_phases(&[]);
}
