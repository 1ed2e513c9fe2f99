//! Frames from OpenAI, and frames to it.

use ovos_toolbox_wire::Object;

use super::*;
use crate::recording::check;

fn openai() -> OpenAi {
    OpenAi {
        url: "wss://api.openai.com".parse().expect("a URL"),
    }
}

#[test]
fn recorded_frames_are_understood() {
    check(&openai(), include_str!("../tests/data/openai.jsonl"));
}

#[test]
fn a_call_is_joined_by_its_id() {
    let key = Key("secret".to_owned());
    let opening = openai().open(&Target::Joined("rtc_u1".to_owned()), Some(&key));
    let opening = opening.expect("an opening");
    assert_eq!(
        opening.url.as_str(),
        "wss://api.openai.com/v1/realtime?call_id=rtc_u1"
    );
    assert_eq!(
        opening.headers,
        [("Authorization", Key("Bearer secret".to_owned()))]
    );
    for bad in [Target::Joined("a&b".to_owned()), Target::Own { resumes: None }] {
        assert!(openai().open(&bad, None).is_err(), "{bad:?}");
    }
}

#[test]
fn an_answer_is_the_output_of_the_call() {
    let call = VoiceCall {
        id: "call_1".to_owned(),
        name: "wave".to_owned(),
        arguments: Ok(Object::new()),
        wants_answer: true,
        turn: Some("resp_1".to_owned()),
    };
    let item = |output: &Value| {
        let item = json!({"type": "function_call_output", "call_id": "call_1", "output": output.to_string()});
        json!({"type": "conversation.item.create", "item": item}).to_string()
    };
    let result = json!({"success": true, "message": "m", "data": null});
    let failure =
        json!({"success": false, "message": "Busy.", "data": {"error": {"kind": "K", "message": "K: busy"}}});
    let failed = Outcome::Failure {
        kind: "K".to_owned(),
        message: "K: busy".to_owned(),
        sentence: "Busy.".to_owned(),
    };
    for (outcome, frame) in [
        (Outcome::Result(result.clone()), item(&result)),
        (failed, item(&failure)),
    ] {
        assert_eq!(openai().answer(&call, &outcome), [frame]);
    }
    assert_eq!(
        openai().speak(),
        Some(json!({"type": "response.create"}).to_string())
    );
}
