//! Calls over Hume's protocol, from the frame to the answer.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::support::process::DEADLINE;
use crate::voice::speech::tool_call;
use crate::voice::stage::{KEY, Stage, moves};

#[test]
fn each_call_is_run_once_and_answered_in_the_form_that_voices_know() {
    let stage = Stage::new(&json!({"tools": {"deny": ["ping"]}}));
    let door = stage.door(&["hume", "--chat", "c1"]);
    let line = stage.speech.accept();
    assert_eq!(line.path, "/v0/evi/chat/c1/connect");
    assert_eq!(line.key, KEY);
    let tools = line.tools();
    assert_eq!(tools[..2], ["emergency_stop", "stop_moving"]);
    for (name, is_shown) in [
        ("add", true),
        ("assemble", true),
        ("ping", false),
        ("reset_stop", false),
    ] {
        assert_eq!(tools.contains(&name.to_owned()), is_shown, "{name} in {tools:?}");
    }

    line.call("a", "add", &json!({"a": 2, "b": 3}));
    let expected = json!({"success": true, "message": "add is done", "data": {"result": 5}});
    assert_eq!(line.result("a"), expected);

    line.call(
        "m",
        "assemble",
        &json!({"subsystems": ["base"], "steps": 1, "step_ms": 1}),
    );
    let result = line.result("m");
    assert_eq!(result["success"], true, "{result}");

    // The same id again runs nothing and is not answered; no more is a call that wants no answer, or one of Hume's own.
    line.call("mark", "set_mark", &json!({}));
    line.call("mark", "set_mark", &json!({}));
    line.result("mark");
    line.call("mark", "set_mark", &json!({}));
    let mut silent = tool_call("silent", "set_mark", "{}");
    silent["response_required"] = json!(false);
    line.say(&silent);
    let mut own = tool_call("own", "web_search", "{}");
    own["tool_type"] = json!("builtin");
    line.say(&own);
    assert_eq!(line.all_so_far("b"), Vec::<Value>::new());
    line.until_marks(2);

    for (id, frame, expected) in [
        (
            "unknown",
            tool_call("unknown", "fly", "{}"),
            "There is no tool \"fly\"",
        ),
        (
            "hidden",
            tool_call("hidden", "ping", "{}"),
            "There is no tool \"ping\"",
        ),
        (
            "broken",
            tool_call("broken", "assemble", "{\"steps\": "),
            "assemble did not run. Its parameters: expected a JSON object",
        ),
        ("empty", tool_call("empty", "add", ""), "The arguments of `add`"),
        (
            "wrong",
            tool_call("wrong", "add", "{\"a\": \"x\", \"b\": 1}"),
            "The arguments of `add`",
        ),
    ] {
        line.say(&frame);
        let answer = line.answer(id);
        assert_eq!(
            (&answer["type"], &answer["level"], &answer["code"]),
            (&json!("tool_error"), &json!("warn"), &json!("ValueError")),
            "{answer}"
        );
        assert!(answer["content"].as_str().unwrap().contains(expected), "{answer}");
    }
    assert!(!door.output().contains(KEY), "{}", door.output());
}

#[test]
fn frames_that_make_no_sense_disturb_nothing() {
    let stage = Stage::new(&json!({}));
    let (mut door, line) = stage.joined();
    let audio = json!({"type": "audio_output", "data": "UklG".repeat(1 << 20), "id": "x", "index": 0});
    let frames = [
        "",
        "not JSON",
        "{\"type\": \"tool_call\"",
        "{\"type\": \"tool_call\", \"parameters\": nul}",
        "{\"type\": \"tool_call\", \"name\": \"add\"}",
        "{\"type\": \"new\", \"x\": {}}",
        "[]",
        "\u{0}",
        &audio.to_string(),
    ];
    for frame in frames {
        line.say_raw(Message::text(frame));
    }
    line.say_raw(Message::binary(vec![0xff; 1 << 20]));
    line.say(&json!({"type": "error", "code": "E1", "slug": "odd", "message": "what"}));
    assert_eq!(line.all_so_far("a"), Vec::<Value>::new());
    assert!(door.ended().is_none());

    // One that is longer than anything that makes sense ends the socket, and the door comes back.
    line.say_raw(Message::text("x".repeat((16 << 20) + 1)));
    let line = stage.accepted();
    line.call("b", "add", &json!({"a": 1, "b": 1}));
    assert_eq!(line.result("b")["data"], json!({"result": 2}));
}

#[test]
fn the_stops_are_always_there_and_work() {
    let mut stage = Stage::new(&json!({"tools": {"allow": ["assemble", "add"]}}));
    let (_door, line) = stage.joined();
    line.call("move", "assemble", &moves("left_arm"));
    stage.scene.until_moving("voice-hume-");
    // Whatever stands in its parameters.
    line.say(&tool_call("stop", "stop_moving", "not JSON"));
    let stopped = line.until("both", both("stop", "move"));
    assert_eq!(stopped["stop"]["success"], true, "{stopped:?}");
    assert_eq!(stopped["move"]["success"], false, "{stopped:?}");

    line.call("move2", "assemble", &moves("left_arm"));
    stage.client.until_phases(&[("running", 1)]);
    line.say(&tool_call("emergency", "emergency_stop", ""));
    let stopped = line.until("both", both("emergency", "move2"));
    assert_eq!(stopped["emergency"]["data"]["confirmed"], true, "{stopped:?}");
    line.call("move3", "assemble", &moves("left_arm"));
    let answer = line.answer("move3");
    assert!(
        answer["content"]
            .as_str()
            .unwrap()
            .contains("an operator has to lift the stop"),
        "{answer}"
    );
}

/// It cannot be answered, and stops all the same.
#[test]
fn a_stop_without_a_usable_id_stops() {
    for id in [String::new(), "x".repeat(300)] {
        let stage = Stage::new(&json!({}));
        let (_door, line) = stage.joined();
        line.call("move", "assemble", &moves("left_arm"));
        stage.scene.until_moving("voice-hume-");
        line.say(&tool_call(&id, "emergency_stop", "{}"));
        let answer = line.answer("move");
        assert!(answer.to_string().contains("success\\\":false"), "{answer}");
        line.call("move2", "assemble", &moves("left_arm"));
        assert_eq!(line.answer("move2")["code"], "EmergencyStop");
    }
}

/// Collects the results of two calls, in whatever order they come.
fn both(first: &str, second: &str) -> impl FnMut(&Value) -> Option<serde_json::Map<String, Value>> + use<> {
    let wanted = [first.to_owned(), second.to_owned()];
    let mut found = serde_json::Map::new();
    move |frame| {
        let id = frame["tool_call_id"].as_str()?;
        if wanted.iter().any(|wanted| wanted == id) {
            let content = frame["content"].as_str().unwrap();
            let result = serde_json::from_str(content).unwrap_or_else(|_| json!({"success": false}));
            found.insert(id.to_owned(), result);
        }
        (found.len() == 2).then(|| found.clone())
    }
}

#[test]
fn an_interruption_ends_motion_only_where_that_is_configured() {
    for (keys, goes_on) in [
        (json!({}), true),
        (json!({"interrupt": "ignore"}), true),
        (json!({"interrupt": "cancel_motion"}), false),
    ] {
        let stage = Stage::new(&keys);
        let (_door, line) = stage.joined();
        line.call("move", "assemble", &moves("left_arm"));
        line.call("write", "set_mark", &json!({"ms": 300}));
        stage.scene.until_moving("voice-hume-");
        line.say(&json!({"type": "user_interruption", "time": 1}));
        if goes_on {
            // The door has read it: it answers what came after it.
            line.call("probe", "add", &json!({"a": 1, "b": 1}));
            line.result("probe");
            line.result("write");
            let before = stage.scene.motors().len();
            stage.scene.until_motors("another step", |motors| {
                let halted = motors.iter().any(|motor| motor.kind == "halt");
                assert!(!halted, "{keys}: it was halted");
                let steps = motors.iter().skip(before).filter(|motor| motor.kind == "step");
                (steps.count() > 10).then_some(())
            });
        } else {
            let ended = line.until("both", both("move", "write"));
            assert_eq!(ended["move"]["success"], false, "{ended:?}");
            assert_eq!(ended["write"]["success"], true, "{ended:?}");
        }
    }
}

#[test]
fn a_long_call_is_announced_and_its_end_is_told() {
    let stage = Stage::new(&json!({"long_calls": "announce", "announce_after_ms": 200}));
    let (_door, line) = stage.joined();
    line.call("short", "add", &json!({"a": 1, "b": 1}));
    assert_eq!(line.result("short")["data"], json!({"result": 2}));
    line.call(
        "long",
        "assemble",
        &json!({"subsystems": ["base"], "steps": 20, "step_ms": 20}),
    );
    let answer = line.result("long");
    assert_eq!(answer["data"], json!({"state": "under_way"}), "{answer}");
    let text = line.until("its end", |frame| {
        (frame["type"] == "assistant_input").then(|| frame["text"].clone())
    });
    assert!(text.as_str().unwrap().starts_with("assemble is done"), "{text}");
    assert_eq!(
        line.all_so_far("probe"),
        Vec::<Value>::new(),
        "it is answered once"
    );
}

#[test]
fn a_voice_asks_for_a_call_that_was_announced_and_cancels_it() {
    let mut stage = Stage::new(&json!({"long_calls": "announce", "announce_after_ms": 400}));
    let _door = stage.door(&["hume", "--chat", "c1"]);
    let line = stage.speech.accept();
    line.say(&json!({"type": "chat_metadata", "chat_id": "c1", "chat_group_id": "g1"}));
    let tools = line.tools();
    for tool in ["wait_call", "cancel_call", "list_calls"] {
        assert!(tools.iter().any(|name| name == tool), "{tools:?}");
    }
    line.call("long", "assemble", &moves("base"));
    let answer = line.result("long");
    let message = answer["message"].as_str().unwrap();
    let (_, rest) = message.split_once("as call_id ").expect(message);
    let call_id = json!({ "call_id": rest.split([' ', '.']).next().unwrap() });
    line.call("list", "list_calls", &json!({}));
    let list = line.result("list");
    assert_eq!(list["data"]["calls"][0]["call_id"], call_id["call_id"], "{list}");
    line.call("wait", "wait_call", &call_id);
    let waited = line.result("wait");
    assert_eq!(waited["data"]["state"], "under_way", "{waited}");
    line.call("end", "cancel_call", &call_id);
    stage.client.until_phases(&[]);
    let text = line.until("its end", |frame| {
        (frame["type"] == "assistant_input").then(|| frame["text"].clone())
    });
    assert!(
        text.as_str().unwrap().starts_with("assemble did not succeed"),
        "{text}"
    );
    line.call("none", "wait_call", &json!({"call_id": "none"}));
    assert!(
        line.answer("none")["content"]
            .as_str()
            .unwrap()
            .contains("list_calls")
    );
}

#[test]
fn a_call_that_has_to_be_confirmed_is_answered_with_a_sentence_and_runs_after_the_approval() {
    let stage = Stage::on_hardware();
    let (_door, line) = stage.joined();
    let args = json!({"subsystems": ["base"], "steps": 1, "step_ms": 1});
    line.call("first", "assemble", &args);
    let answer = line.answer("first");
    let sentence = answer["content"].as_str().unwrap();
    assert_eq!(answer["code"], "ConfirmationRequired", "{answer}");
    assert!(!answer.to_string().contains("token"), "{answer}");
    let (_, rest) = sentence.split_once("`ovos-tools approve ").expect(sentence);
    let (id, _) = rest.split_once('`').expect(sentence);
    assert!(stage.scene.motors().is_empty());

    line.call("again", "assemble", &args);
    assert_eq!(line.answer("again")["code"], "ConfirmationRequired");
    stage.scene.ours("approve", &["approve", id]).finish();
    line.call("then", "assemble", &args);
    assert_eq!(line.result("then")["success"], true);
}

#[test]
fn a_reload_changes_the_tools_of_the_conversation() {
    let mut stage = Stage::new(&json!({}));
    let (_door, line) = stage.joined();
    stage.client.invoke("grow", &json!({"tools": 2}));
    let tools = line.tools();
    assert!(tools.contains(&"grown_2".to_owned()), "{tools:?}");
    line.call("new", "grown_2", &json!({}));
    line.result("new");
    stage.client.invoke("grow", &json!({"tools": 0}));
    let tools = line.tools();
    assert!(!tools.contains(&"grown_2".to_owned()), "{tools:?}");
}

/// SIGTERM ends the calls, tells the voice, and closes the socket.
#[test]
fn a_door_that_is_asked_to_end_leaves_nothing_moving() {
    let stage = Stage::new(&json!({}));
    let (mut door, line) = stage.joined();
    line.call("move", "assemble", &moves("left_arm"));
    stage.scene.until_moving("voice-hume-");
    door.signal(rustix::process::Signal::TERM);
    let answer = line.answer("move");
    assert!(
        answer["content"].as_str().unwrap().contains("\"success\":false"),
        "{answer}"
    );
    assert!(door.end_within(DEADLINE).success(), "{}", door.log());
    assert!(line.next(Duration::from_secs(5)).is_none());
}

impl crate::voice::speech::Line {
    /// Asks until this many marks are set.
    #[track_caller]
    fn until_marks(&self, wanted: u64) {
        for attempt in 0..200 {
            let id = format!("count-{attempt}");
            self.call(&id, "count_marks", &json!({}));
            let marks = self.result(&id)["data"]["marks"].as_u64().unwrap();
            assert!(marks <= wanted, "{marks} marks are set");
            if marks == wanted {
                return;
            }
        }
        panic!("never {wanted} marks");
    }
}
