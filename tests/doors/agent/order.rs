//! What of an answer is made, and what is not: stops first, nothing after a refusal, and what budgets allow.

use serde_json::{Value, json};

use crate::agent::model::{Model, Reply, call, calls, finish};
use crate::agent::stage::{Stage, made};

/// One call of `call_tool` with arguments as the model writes them, and one that moves something.
fn through_call_tool(written: &str) -> Reply {
    let function = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "call_tool", "arguments": arguments}});
    let moves = json!({"name": "assemble", "arguments": {"steps": 1}}).to_string();
    Reply::Says(
        json!({"role": "assistant", "content": null, "tool_calls": [function("m", &moves), function("s", written)]}),
    )
}

#[test]
fn a_stop_through_call_tool_is_carried_out_first_whatever_stands_beside_it() {
    for written in [
        r#"{"name": "emergency_stop"}"#,
        r#"{"name": "emergency_stop", "arguments": {bad"#,
        r#"{"name": "emergency_stop", "arguments": 7}"#,
        r#"{"name": "stop", "arguments": {}}"#,
        r#"{"name": "stop", "arguments": "[1]"}"#,
    ] {
        let mut stage = Stage::new(&json!({"tools_budget_bytes": 100}));
        let model = Model::new(vec![through_call_tool(written)]);
        let ended = stage.run(&model, &[]);
        assert_eq!(ended.reason(), "latched", "{written}: {}", ended.output);
        // The end says what came of the stop, also where the model is asked no more.
        let why = ended.json["end"]["why"].as_str().unwrap();
        assert!(
            why.starts_with("the model called ") && why.contains(": "),
            "{why}"
        );
        let status = stage.client.ask("ovos.tools.status", &json!({}));
        assert_eq!(status["toolboxes"][0]["latched"], true, "{written}");
        let motors = stage.scene.motors();
        assert!(
            motors
                .iter()
                .all(|motor| motor.kind == "emergency" || motor.kind == "halt"),
            "{written}: it moved"
        );
    }
}

/// Moves one part a little; `more` are arguments that budgets are charged from.
fn moves(part: &str, more: &Value) -> (&'static str, Value) {
    let mut args = json!({"step_ms": 1, "steps": 1, "subsystems": [part]});
    args.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    ("assemble", args)
}

#[test]
fn what_follows_a_refusal_or_asks_for_more_than_is_left_is_not_made() {
    let (left, right) = ("left_arm", "right_arm");
    let turn = |deg: Value| json!({ "deg": deg });
    type Row = (&'static str, Vec<(&'static str, Value)>, &'static [&'static str]);
    let rows: Vec<Row> = vec![
        (
            "an unknown tool before a motion",
            vec![("fly", json!({})), moves(left, &json!({}))],
            &["refused", "not_made"],
        ),
        (
            "a plan that is refused before a motion",
            vec![("assemble", json!({"steps": "many"})), moves(left, &json!({}))],
            &["refused", "not_made"],
        ),
        (
            "a motion before a refusal",
            vec![
                moves(left, &json!({})),
                ("fly", json!({})),
                moves(right, &json!({})),
            ],
            &["completed", "refused", "not_made"],
        ),
        (
            "more degrees than there are",
            vec![moves(left, &turn(json!(361)))],
            &["refused"],
        ),
        (
            "the same as text",
            vec![moves(left, &turn(json!("361")))],
            &["refused"],
        ),
        (
            "degrees that are no number",
            vec![moves(left, &turn(json!("all")))],
            &["refused"],
        ),
        (
            "two calls of a batch that ask for too much together",
            vec![moves(left, &turn(json!("200"))), moves(right, &turn(json!(200)))],
            &["completed", "refused"],
        ),
        (
            "a way of the robot's base",
            vec![moves(left, &json!({"direction": "forward", "distance": 6}))],
            &["refused"],
        ),
        (
            "two that fit",
            vec![moves(left, &turn(json!(180))), moves(right, &turn(json!(180)))],
            &["completed", "completed"],
        ),
    ];
    let stage = Stage::new(&json!({}));
    for (number, (name, request, expected)) in rows.into_iter().enumerate() {
        let record = stage.scene.sandbox.path(&format!("{number}.jsonl"));
        let model = Model::new(vec![calls(&request), finish()]);
        let before = stage.scene.motors().len();
        let ended = stage.run(&model, &["--record", record.to_str().unwrap()]);
        assert_eq!(ended.reason(), "done", "{name}: {}", ended.output);
        let made = made(&record);
        let statuses: Vec<&str> = made[..request.len()]
            .iter()
            .map(|call| call["status"].as_str().unwrap())
            .collect();
        assert_eq!(statuses, expected, "{name}: {made:#?}");
        let moved = stage.scene.motors().len() > before;
        assert_eq!(moved, expected.contains(&"completed"), "{name}");
    }
}

#[test]
fn a_run_of_a_machine_that_counts_nothing_ends_when_its_budget_is_used() {
    let stage = Stage::new(&json!({}));
    let moving = |more: Value| {
        let (name, args) = moves("base", &more);
        call(name, args)
    };
    for (more, reason) in [
        (json!({"deg": 180}), "rotation"),
        (
            json!({"direction": "forward", "speed": 1, "duration": 2.5}),
            "distance",
        ),
    ] {
        let model = Model::new(vec![moving(more.clone()), moving(more.clone()), moving(more)]);
        let ended = stage.run(&model, &[]);
        assert_eq!(ended.reason(), reason, "{}", ended.output);
        assert_eq!(model.requests().len(), 3);
    }
}

#[test]
fn a_terminal_that_is_not_read_holds_nothing_up() {
    use std::process::Stdio;
    let stage = Stage::new(&json!({"budgets": {"steps": 200, "calls": 200}}));
    let mut script: Vec<Reply> = (0..80)
        .map(|n| {
            let function = json!({"name": "add", "arguments": {"a": n, "b": 1}});
            Reply::Says(json!({"content": "x".repeat(1900), "tool_calls": [{"id": n.to_string(), "function": function}]}))
        })
        .collect();
    script.push(finish());
    let model = Model::new(script);
    let mut command = crate::agent::stage::command(&stage.scene);
    command
        .args(["--url", &model.url, "--goal", "talk"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut agent = command.spawn().unwrap();
    let unread = agent.stdout.take();
    let end = std::time::Instant::now() + crate::support::process::DEADLINE;
    let status = loop {
        if let Some(status) = agent.try_wait().unwrap() {
            break Some(status);
        }
        if std::time::Instant::now() > end {
            agent.kill().unwrap();
            agent.wait().unwrap();
            break None;
        }
        std::thread::yield_now();
    };
    drop(unread);
    assert_eq!(status.and_then(|status| status.code()), Some(0));
    assert_eq!(model.requests().len(), 81);
}
