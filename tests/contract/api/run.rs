//! Runs: their keys, their progress and their plans.

use serde_json::json;

use crate::api::world;
use crate::support::contract::expect;

const RUN: &str = "ovos.tools.run";

#[test]
fn a_run_answers_for_each_step_and_tells_its_progress() {
    let (_world, mut client) = world();
    let move_arm = json!({"subsystems": ["left_arm"], "step_ms": 1, "steps": 1});
    let n = client.send(
        RUN,
        json!({"call_id": "mine", "progress": true, "detail": true, "steps": [
            {"id": "move", "name": "assemble", "args": move_arm},
            {"id": "bad", "name": "fail", "after": ["move"], "args": {"message": {"$from": "move.completed.0"}}},
            {"id": "later", "name": "ping", "after": ["bad"]},
        ]}),
    );
    let answer = client.answer(n);
    expect(
        "the answer",
        &json!({
            "call_id": "mine", "ok": false,
            "error": "~RuntimeError: step 'bad': Tool execution failed for 'fail'",
            "error_detail": {"kind": "RuntimeError"},
            "steps": [
                {"id": "move", "name": "assemble", "status": "completed", "call_id": "mine:move",
                 "result": {"...": 0, "success": true}},
                {"id": "bad", "name": "fail", "status": "failed", "call_id": "mine:bad",
                 "error": "~calibrate:left_arm", "error_detail": {"...": 0, "kind": "RuntimeError"}},
                {"id": "later", "name": "ping", "status": "not_started", "reason": "step 'bad' failed"},
            ],
        }),
        &answer,
    );
    // Everything that was told before the answer has arrived.
    let progress = client.take(|frame| frame["type"] == "ovos.tools.invoke.progress");
    assert!(!progress.is_empty());
    for message in &progress {
        assert_eq!(message["data"]["call_id"], "mine", "{message}");
    }
    let waves = progress
        .iter()
        .filter(|message| message["data"]["kind"] == "wave");
    let steps: Vec<_> = waves.map(|message| message["data"]["step"].clone()).collect();
    assert_eq!(json!(steps), json!(["move", "move", "move", "move", "bad"]));
}

#[test]
fn a_run_that_is_not_valid_and_its_plan_are_errors() {
    let (_world, mut client) = world();
    let steps = json!([{"id": "a", "name": "ping", "after": ["b"]}]);
    let error = "~ValueError: step 'a': 'after' names 'b'";
    expect(
        "the run",
        &json!({"call_id": "c", "ok": false, "error": error, "steps": []}),
        &client.ask(RUN, json!({"call_id": "c", "steps": steps})),
    );
    expect(
        "its plan",
        &json!({"name": "", "error": error}),
        &client.ask("ovos.tools.plan", json!({ "steps": steps })),
    );
    let steps = json!([
        {"id": "a", "name": "add", "args": {"a": 1, "b": 2}},
        {"id": "b", "name": "add", "args": {"a": 1, "b": {"$from": "a.result"}}},
    ]);
    expect(
        "a plan",
        &json!({"steps": [
            {"id": "a", "name": "add", "after": [], "plan": {"...": 0, "effect": "read"}},
            {"id": "b", "name": "add", "after": ["a"], "planned_later": ["a.result"]},
        ]}),
        &client.ask("ovos.tools.plan", json!({ "steps": steps })),
    );
}

#[test]
fn the_content_of_steps_is_carried() {
    let (_world, mut client) = world();
    let answer = client.ask(
        RUN,
        json!({"content": "path", "steps": [{"id": "shot", "name": "show", "args": {"text": "hello"}}]}),
    );
    expect(
        "the content",
        &json!([{"...": 0, "type": "text", "mime_type": "text/plain"}]),
        &answer["steps"][0]["content"],
    );
}
