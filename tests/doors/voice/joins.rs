//! Which conversations a door serves, and how it hears of them.

use std::time::Duration;

use serde_json::json;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::support::client::Client;
use crate::support::process::DEADLINE;
use crate::voice::stage::{KEY, Stage};

#[test]
fn an_app_names_the_conversation_on_the_bus() {
    let mut stage = Stage::new(&json!({}));
    let mut door = stage.door(&[]);
    door.until("a door that listens", |door| {
        door.output()
            .contains("waiting for ovos.tools.voice.join")
            .then_some(())
    });
    for (request, expected) in [
        (json!({}), "ValueError: expected dialect"),
        (json!({"dialect": "gemini"}), "expected \"hume\" or \"openai\""),
        (json!({"dialect": "hume", "call_id": "x"}), "chat_id is missing"),
        (json!({"dialect": "hume", "chat_id": "../x"}), "is not a chat_id"),
    ] {
        let answer = stage.client.ask("ovos.tools.voice.join", &request);
        assert!(answer["error"].as_str().unwrap().contains(expected), "{answer}");
    }

    for (request, path) in [
        (
            json!({"dialect": "hume", "chat_id": "c7"}),
            "/v0/evi/chat/c7/connect",
        ),
        (
            json!({"dialect": "openai", "call_id": "rtc_1"}),
            "/v1/realtime?call_id=rtc_1",
        ),
    ] {
        stage.client.send("ovos.tools.voice.join", &request);
        let line = stage.speech.accept();
        assert_eq!(line.path, path);
        assert!(line.key.ends_with(KEY), "{}", line.key);
        assert!(line.tools().contains(&"add".to_owned()));
        let answer = stage.client.until("the answer", |frame| {
            (frame["type"] == "ovos.tools.voice.join.response").then(|| frame["data"].clone())
        });
        let mut expected = request.clone();
        expected["joined"] = json!(true);
        assert_eq!(answer, expected);
        // Asked for again, it is not joined again.
        assert_eq!(stage.client.ask("ovos.tools.voice.join", &request), expected);
        assert!(stage.speech.accept_within(Duration::from_millis(300)).is_none());
        line.close(CloseCode::Normal);
    }
    assert!(door.ended().is_none());
    assert!(!door.output().contains(KEY));
}

#[test]
fn a_conversation_is_served_by_one_door() {
    let stage = Stage::new(&json!({}));
    let (_door, line) = stage.joined();
    let mut second = stage.door(&["hume", "--chat", "c1"]);
    assert_eq!(second.end_within(DEADLINE).code(), Some(5));
    assert!(
        second.output().contains("already serves this conversation"),
        "{}",
        second.log()
    );
    line.call("a", "add", &json!({"a": 1, "b": 1}));
    line.result("a");
}

#[test]
fn a_chat_of_our_own_goes_on_in_its_group() {
    let stage = Stage::new(&json!({}));
    let _door = stage.door(&["hume"]);
    let mut resumed = String::new();
    for number in 1..=3 {
        let line = stage.speech.accept();
        assert_eq!(line.path, format!("/v0/evi/chat?allow_connection=true{resumed}"));
        line.say(&json!({"type": "chat_metadata", "chat_id": format!("own{number}"), "chat_group_id": "g"}));
        line.tools();
        // The ids are of the new chat: this is another call.
        line.call("a", "add", &json!({"a": number, "b": 1}));
        assert_eq!(line.result("a")["data"], json!({"result": number + 1}));
        line.cut();
        resumed = "&resumed_chat_group_id=g".to_owned();
    }
}

#[test]
fn what_cannot_be_joined_is_explained() {
    let stage = Stage::new(&json!({}));
    for (arguments, code, expected) in [
        (&["hume", "--chat", "a b"][..], 5, "is not a chat_id"),
        (
            &["hume", "--chat", "a", "--url", "ws://api.hume.ai"],
            2,
            "an address like wss://host",
        ),
        (&["openai"], 2, "--call <ID>"),
        (
            &["hume", "--chat", "a", "--url", "ws://127.0.0.1:1"],
            5,
            "127.0.0.1: ",
        ),
    ] {
        let mut door = stage.door(arguments);
        assert_eq!(door.end_within(DEADLINE).code(), Some(code), "{arguments:?}");
        assert!(door.output().contains(expected), "{arguments:?}: {}", door.log());
    }
    let mut keyless = stage.scene.ours(
        "keyless",
        &[
            "voice",
            "--bus",
            &stage.scene.url(),
            "hume",
            "--url",
            "wss://localhost.test",
        ],
    );
    assert_eq!(keyless.end_within(DEADLINE).code(), Some(5));
    let output = keyless.output();
    assert!(
        output.contains("set the environment variable KEY_OF_hume to the API key"),
        "{output}"
    );
}

#[test]
fn a_rule_keeps_satellites_from_having_conversations_joined() {
    let mut stage = Stage::with_policy(&json!([{"who": "hive", "tools": ["voice.join"], "decide": "deny"}]));
    let mut door = stage.door(&[]);
    door.until("a door that listens", |door| {
        door.output()
            .contains("waiting for ovos.tools.voice.join")
            .then_some(())
    });
    let request = json!({"dialect": "hume", "chat_id": "c7"});
    let mut satellite = Client::connect(stage.scene.port).via_satellite("kitchen");
    let answer = satellite.ask("ovos.tools.voice.join", &request);
    let error = answer["error"].as_str().unwrap();
    assert!(
        error.starts_with("PermissionError: hive:kitchen may not use 'voice.join'"),
        "{answer}"
    );
    assert!(stage.speech.accept_within(Duration::from_millis(300)).is_none());
    stage.client.send("ovos.tools.voice.join", &request);
    stage.speech.accept().close(CloseCode::Normal);
}
