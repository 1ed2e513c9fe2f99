//! What steps take, plan and answer.

use serde_json::{Value, json};

use crate::run::{RUN, after, ended, stage, stage_with, statuses, step};
use crate::support::client::Client;

#[test]
fn values_go_from_results_to_arguments() {
    let mut stage = stage();
    let answer = stage.client.ask(
        RUN,
        &json!({ "call_id": "r", "steps": [
            step("third", "echo", json!({ "text": { "$from": "move.completed.1" } })),
            step("sum", "add", json!({ "a": { "$from": "first.result" }, "b": { "$from": "first.result" } })),
            step("first", "add", json!({ "a": "123456789012345678901234567890", "b": 1 })),
            step("move", "assemble", json!({ "subsystems": ["left_arm"], "step_ms": 1, "steps": 1 })),
            step("whole", "echo", json!({ "$from": "third" })),
            { "id": "whose", "name": "dup", "toolbox_id": "testbed_dup", "after": ["whole"] },
        ] }),
    );
    assert_eq!(
        statuses(&answer),
        "third completed, sum completed, first completed, move completed, whole completed, whose completed",
        "{answer}"
    );
    assert_eq!(
        (&answer["ok"], answer.get("error")),
        (&json!(true), None),
        "{answer}"
    );
    assert_eq!(answer["call_id"], "r");
    let of = |index: usize| answer["steps"][index]["result"].clone();
    assert_eq!(of(0), json!({ "text": "move:left_arm" }));
    assert_eq!(of(1)["result"].to_string(), "246913578024691357802469135782");
    assert_eq!(of(4), of(0));
    assert_eq!(of(5), json!({ "owner": "testbed_dup" }));
    assert_eq!(answer["steps"][1]["call_id"], "r:sum");
    let motors = stage.scene.motors();
    assert!(
        motors.iter().any(|motor| motor.run == "r:move/move:left_arm"),
        "{motors:?}"
    );
}

#[test]
fn an_invalid_run_does_nothing() {
    let mut stage = stage();
    let mark = step("mark", "set_mark", json!({}));
    let with = |more: &[Value]| Value::from_iter([std::slice::from_ref(&mark), more].concat());
    let many = Value::from_iter((0..65).map(|n| step(&n.to_string(), "set_mark", json!({}))));
    for (steps, expected) in [
        (
            with(&[
                after("a", "ping", &["c"]),
                after("b", "ping", &["a"]),
                after("c", "ping", &["b"]),
            ]),
            "in a circle: ",
        ),
        (
            with(&[after("a", "ping", &["b"])]),
            "step 'a': 'after' names 'b', which is not a step of this run",
        ),
        (
            with(&[step("a", "echo", json!({ "text": { "$from": "b.x" } }))]),
            "step 'a': '$from' names 'b'",
        ),
        (
            with(&[step("a", "no_such_tool", json!({}))]),
            "ValueError: step 'a': Unknown tool: 'no_such_tool'",
        ),
        (
            with(&[step("a", "dup", json!({}))]),
            "AmbiguousToolError: step 'a': 'dup' is owned by",
        ),
        (
            with(std::slice::from_ref(&mark)),
            "steps number 1 and 2 both have the id 'mark'",
        ),
        (
            with(&[step("a", "reset_stop", json!({}))]),
            "PermissionError: step 'a': 'reset_stop' lifts an emergency stop",
        ),
        (many, "'steps' must be a list of 1 to 64 steps, got a list of 65"),
        (json!(null), "'steps' must be a list of 1 to 64 steps, got null"),
    ] {
        let answer = stage.run(&steps);
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(error.contains(expected), "no {expected:?} in {answer}");
        assert_eq!(
            (&answer["ok"], &answer["steps"]),
            (&json!(false), &json!([])),
            "{answer}"
        );
    }
    for (key, value, expected) in [
        ("content", json!("inline"), "'content' must be \"path\" in a run"),
        ("timeout_ms", json!(0), "'timeout_ms' must be"),
        (
            "call_id",
            json!("x".repeat(124)),
            "'call_id' and the longest step id must not exceed 127",
        ),
        ("call_id", json!("a b"), "'call_id' must be"),
    ] {
        let mut data = json!({ "steps": with(&[]) });
        data[key] = value;
        let answer = stage.client.ask(RUN, &data);
        assert!(
            answer["error"].as_str().unwrap_or_default().contains(expected),
            "{answer}"
        );
    }
    assert_eq!(stage.marks(), 0);
}

#[test]
fn a_value_that_is_not_in_the_result_fails_its_step() {
    let mut stage = stage();
    let answer = stage.run(&json!([
        step("sum", "add", json!({ "a": 1, "b": 2 })),
        step("use", "echo", json!({ "text": { "$from": "sum.total" } })),
        after("later", "set_mark", &["use"]),
    ]));
    ended(
        &answer,
        "ValueError",
        "sum completed, use failed, later not_started",
    );
    assert_eq!(
        answer["steps"][1]["error"],
        "ValueError: {\"$from\": \"sum.total\"}: the result of step 'sum' has no 'total': it has result"
    );
    assert_eq!(stage.marks(), 0);
}

#[test]
fn a_step_under_confirm_ends_the_run_and_is_confirmed_by_itself_with_its_final_arguments() {
    let policy = json!([
        { "tools": ["assemble"], "decide": "confirm" },
        { "tools": ["set_mark"], "decide": "deny", "reason": "not here" },
    ]);
    let mut stage = stage_with(&json!({ "policy": policy }), &json!({}));
    let answer = stage.run(&json!([
        step("which", "echo", json!({ "text": "left_arm" })),
        step(
            "move",
            "assemble",
            json!({ "subsystems": [{ "$from": "which.text" }], "step_ms": 1, "steps": 1 })
        ),
        after("later", "ping", &["move"]),
    ]));
    ended(
        &answer,
        "ConfirmationRequired",
        "which completed, move confirmation_required, later not_started",
    );
    assert!(stage.scene.motors().is_empty(), "nothing moved yet");
    let waits = &answer["steps"][1];
    let confirm = &waits["confirm"];
    let (text, plan) = (
        confirm["text"].as_str().unwrap(),
        confirm["plan"].as_str().unwrap(),
    );
    assert!(
        text.contains(r#"subsystems "left_arm""#) && plan.contains("@ left_arm"),
        "it was decided on the final arguments: {confirm}"
    );
    assert_eq!(waits["args"]["subsystems"], json!(["left_arm"]), "{waits}");
    let confirmed = stage.client.ask(
        "ovos.tools.invoke",
        &json!({ "name": "assemble", "args": waits["args"], "confirm": waits["confirm"]["token"] }),
    );
    assert_eq!(confirmed["result"]["success"], true, "{confirmed}");

    let answer = stage.run(&json!([
        after("mark", "set_mark", &[]),
        after("later", "ping", &["mark"])
    ]));
    ended(&answer, "PermissionError", "mark failed, later not_started");
    assert!(answer["error"].as_str().unwrap().contains("not here"), "{answer}");
}

#[test]
fn a_plan_of_a_run_shows_what_is_known_and_runs_nothing() {
    let mut stage = stage();
    let plan = |steps: Value| json!({ "steps": steps });
    let answer = stage.client.ask(
        "ovos.tools.plan",
        &plan(json!([
            step("move", "assemble", json!({ "subsystems": ["left_arm"] })),
            after("mark", "set_mark", &["move"]),
            step("tell", "echo", json!({ "text": { "$from": "move.completed.0" } })),
            step("bad", "add", json!({})),
        ])),
    );
    let steps = answer["steps"].as_array().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(steps[0]["plan"]["subsystems"], json!(["left_arm"]), "{answer}");
    assert_eq!(steps[0]["after"], json!([]));
    assert_eq!(
        steps[1]["plan"]["name"], "set_mark",
        "its arguments are known: {answer}"
    );
    assert_eq!(
        steps[2],
        json!({ "id": "tell", "name": "echo", "after": ["move"], "planned_later": ["move.completed.0"] })
    );
    assert!(
        steps[3]["error"]
            .as_str()
            .unwrap()
            .contains("input validation failed for 'add'"),
        "{answer}"
    );
    let invalid = stage
        .client
        .ask("ovos.tools.plan", &plan(json!([after("a", "ping", &["a"])])));
    assert!(
        invalid["error"].as_str().unwrap().contains("in a circle: a -> a"),
        "{invalid}"
    );
    assert!(stage.scene.motors().is_empty());
    assert_eq!(stage.marks(), 0);
}

#[test]
fn two_runs_at_once_share_nothing_but_the_machine() {
    let mut stage = stage();
    let mut other = Client::connect(stage.scene.port).in_session("other");
    stage.client = Client::connect(stage.scene.port).in_session("mine");
    // The first holds nothing between its steps: the second takes the arm meanwhile.
    stage.send(&json!([
        step("wait", "slow", json!({ "seconds": 300 })),
        after("later", "ping", &["wait"]),
    ]));
    stage.client.until_call("r:wait", "running");
    let steps = json!([
        step("wait", "add", json!({ "a": 1, "b": 1 })),
        step(
            "move",
            "assemble",
            json!({ "subsystems": ["left_arm"], "step_ms": 1, "steps": 1 })
        ),
    ]);
    let answer = other.ask(RUN, &json!({ "steps": steps, "call_id": "s" }));
    assert_eq!(statuses(&answer), "wait completed, move completed", "{answer}");
    assert_eq!(
        stage.client.calls().get("r:wait").map(String::as_str),
        Some("running")
    );
    stage.client.send("ovos.stop", &json!({}));
    ended(
        &stage.answer(),
        "CancelledError",
        "wait cancelled, later not_started",
    );
}

#[test]
fn a_run_that_is_too_large_for_the_bus_still_says_what_became_of_its_steps() {
    let mut stage = stage_with(&json!({}), &json!({ "websocket": { "max_msg_size": 1 } }));
    let text = "x".repeat(300_000);
    let mut steps = vec![step("s0", "echo", json!({ "text": text }))];
    steps.extend((1..64).map(|n| {
        let id = format!("s{n}");
        if n < 8 {
            step(&id, "echo", json!({ "text": { "$from": "s0.text" } }))
        } else {
            step(&id, "add", json!({ "a": n, "b": 1 }))
        }
    }));
    let answer = stage.run(&json!(steps));
    assert_eq!(answer["ok"], true, "{}", statuses(&answer));
    let reports = answer["steps"].as_array().unwrap();
    assert_eq!(reports.len(), 64);
    assert!(reports.iter().all(|report| report["status"] == "completed"));
    assert!(
        reports
            .iter()
            .any(|report| report.get("result_left_out").is_some())
    );
}
