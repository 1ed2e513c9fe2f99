//! Frames from Hume, and frames to it.

use serde_json::json;

use super::*;
use crate::recording::check;

fn hume(config_id: Option<&str>) -> Hume {
    Hume {
        url: "wss://api.hume.ai".parse().expect("a URL"),
        config_id: config_id.map(str::to_owned),
    }
}

fn joined(chat: &str) -> Target {
    Target::Joined(chat.to_owned())
}

#[test]
fn recorded_frames_are_understood() {
    check(&hume(None), include_str!("../tests/data/hume.jsonl"));
}

#[test]
fn a_chat_is_joined_by_its_id_and_an_own_one_follows_its_group() {
    let own = |group: Option<&str>| Target::Own {
        resumes: group.map(str::to_owned),
    };
    for (config_id, target, url) in [
        (
            None,
            joined("470a-49f6"),
            "wss://api.hume.ai/v0/evi/chat/470a-49f6/connect",
        ),
        (
            None,
            own(None),
            "wss://api.hume.ai/v0/evi/chat?allow_connection=true",
        ),
        (
            Some("c&1"),
            own(Some("g")),
            "wss://api.hume.ai/v0/evi/chat?allow_connection=true&config_id=c%261&resumed_chat_group_id=g",
        ),
    ] {
        let opening = hume(config_id).open(&target, Some(&Key("secret".to_owned())));
        let opening = opening.expect("an opening");
        assert_eq!(opening.url.as_str(), url);
        assert_eq!(opening.headers, [("X-Hume-Api-Key", Key("secret".to_owned()))]);
        assert!(!format!("{opening:?}").contains("secret"), "{opening:?}");
    }
    for bad in ["", "../x", "a/b", "a?b", "ä"] {
        assert!(hume(None).open(&joined(bad), None).is_err(), "{bad}");
    }
}

#[test]
fn an_answer_is_what_the_tool_returned_or_an_error_with_words_for_the_voice() {
    let call = VoiceCall {
        id: "call_1".to_owned(),
        name: "wave".to_owned(),
        arguments: Ok(Object::new()),
        wants_answer: true,
        turn: None,
    };
    let result = json!({"success": true, "message": "Completed wave", "data": {"duration_ms": 1523}});
    let failure = Outcome::Failure {
        kind: "ValueError".to_owned(),
        message: "ValueError: arm".to_owned(),
        sentence: "That is no arm.".to_owned(),
    };
    for (outcome, frame) in [
        (
            Outcome::Result(result.clone()),
            json!({"type": "tool_response", "tool_call_id": "call_1", "content": result.to_string(), "tool_name": "wave",
                "tool_type": "function"}),
        ),
        (
            failure,
            json!({"type": "tool_error", "tool_call_id": "call_1", "error": "ValueError: arm",
                "content": "That is no arm.", "code": "ValueError", "level": "warn", "tool_type": "function"}),
        ),
    ] {
        assert_eq!(hume(None).answer(&call, &outcome), [frame.to_string()]);
    }
    let report = hume(None).report(&call, &Outcome::Result(result));
    let expected = json!({"type": "assistant_input", "text": "wave is done: Completed wave."});
    assert_eq!(report, [expected.to_string()]);
}

#[test]
fn tools_have_their_schemas_as_text() {
    let tool = ShownTool {
        name: "wave".to_owned(),
        description: "Waves.".to_owned(),
        arguments: json!({"type": "object"}),
    };
    let frames = hume(None).tools_changed(&[tool]);
    let expected = json!({"type": "session_settings", "tools": [{
        "type": "function", "name": "wave", "description": "Waves.", "parameters": "{\"type\":\"object\"}",
    }]});
    assert_eq!(frames, [expected.to_string()]);
}
