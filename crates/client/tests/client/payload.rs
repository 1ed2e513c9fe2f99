//! Answers of other services can be read, and the keys of requests and answers do not change.

use ovos_tools_client::payload::{
    CallOptions, CancelResponse, ContentMode, EmptyRequest, InvokeRequest, InvokeResponse, ListRequest,
    ListResponse, PlanRequest, ProgressKind, ProgressMessage, ReloadResponse, RunRequest, RunResponse,
    RunStep, StatusResponse, StopRequest,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[track_caller]
fn read<A: DeserializeOwned>(data: Value) -> A {
    let text = data.to_string();
    serde_json::from_value(data).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn answers_with_fewer_keys_are_read() {
    let list: ListResponse = read(json!({"tools": [{"name": "add"}]}));
    assert_eq!(
        (list.tools[0].name.as_str(), list.tools[0].toolbox_id.as_str()),
        ("add", "")
    );
    assert!(list.tools[0].meta.is_none());
    // The answer of the Python service.
    let reload: ReloadResponse = read(json!({"loaded": ["a-tools"], "total_tools": 2}));
    assert_eq!(
        (reload.loaded, reload.total_tools),
        (vec!["a-tools".to_owned()], 2)
    );
    assert!(reload.tools.is_empty() && reload.outcome.unwrap_or_default().failed.is_empty());
    let called: InvokeResponse = read(json!({"result": {"result": 3}}));
    assert_eq!(called.result, Some(json!({"result": 3})));
    let status: StatusResponse = read(json!({"toolboxes": [{"toolbox_id": "math"}], "later": 1}));
    assert_eq!(status.toolboxes[0].toolbox_id, "math");
    let cancel: CancelResponse = read(json!({"error": "ValueError: no"}));
    assert!(!cancel.cancelled);
}

#[test]
fn progress_of_a_newer_service_keeps_its_word() {
    for (word, kind) in [
        ("wave", ProgressKind::Wave),
        ("action_ended", ProgressKind::ActionEnded),
        ("later", ProgressKind::Other("later".to_owned())),
    ] {
        let message: ProgressMessage = read(json!({ "kind": word, "fraction": 7 }));
        assert_eq!((&message.kind, message.fraction), (&kind, Some(7.0)));
        assert_eq!(serde_json::to_value(kind).unwrap(), word);
    }
}

#[test]
fn the_report_of_a_newer_service_is_read() {
    let run: RunResponse = read(json!({"ok": false, "steps": [
        {"id": "a", "status": "confirmation_required", "confirm": {"id": "i", "token": "t", "text": "x", "expires_ms": 5}},
        {"id": "b", "status": "paused", "later": 1},
        {"id": "c"},
    ]}));
    let words: Vec<&str> = run.steps.iter().map(|step| step.status.as_str()).collect();
    assert_eq!(words, ["confirmation_required", "paused", ""]);
    assert_eq!(run.steps[0].confirm.as_ref().unwrap().expires_ms, 5);
}

#[test]
fn requests_have_only_the_keys_that_were_given() {
    #[track_caller]
    fn check(request: impl Serialize, expected: Value) {
        assert_eq!(serde_json::to_value(request).unwrap(), expected);
    }
    let name = || "add".to_owned();
    let big: Value = serde_json::from_str(r#"{"a": 123456789012345678901234567890}"#).unwrap();
    check(EmptyRequest {}, json!({}));
    check(StopRequest::default(), json!({}));
    check(ListRequest::default(), json!({}));
    check(
        InvokeRequest {
            name: name(),
            ..InvokeRequest::default()
        },
        json!({"name": "add", "args": {}}),
    );
    check(
        RunRequest {
            steps: vec![RunStep {
                id: "a".to_owned(),
                name: name(),
                ..RunStep::default()
            }],
            ..RunRequest::default()
        },
        json!({"steps": [{"id": "a", "name": "add"}]}),
    );
    check(
        PlanRequest {
            name: name(),
            ..PlanRequest::default()
        },
        json!({"name": "add", "args": {}}),
    );
    check(
        InvokeRequest {
            name: name(),
            args: big.as_object().unwrap().clone(),
            toolbox_id: Some("math".to_owned()),
            options: CallOptions {
                call_id: Some("c".to_owned()),
                timeout_ms: Some(5),
                progress: true,
                detail: true,
                confirm: Some("t".to_owned()),
                decline: Some("u".to_owned()),
                content: Some(ContentMode::Inline),
            },
        },
        json!({"name": "add", "args": big, "toolbox_id": "math", "call_id": "c", "timeout_ms": 5, "progress": true,
            "detail": true, "confirm": "t", "decline": "u", "content": "inline"}),
    );
}
