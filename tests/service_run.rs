//! Runs: calls made of calls, over a real bus. Values go from result to argument, what is ready begins together, and after a
//! failure, a stop or a cancel nothing begins any more; each run has one answer with a report for each step.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics and prints"
)]

#[allow(dead_code, reason = "the helpers serve several test programs")]
mod support {
    pub(crate) mod client;
    pub(crate) mod process;
    pub(crate) mod python;
    pub(crate) mod scene;
    pub(crate) mod service;
}

use serde_json::{Value, json};
use support::client::Client;
use support::process::Process;
use support::scene::{Scene, assert_still, from_first};
use support::service::BusKind;

const RUN: &str = "ovos.tools.run";

struct Stage {
    client: Client,
    scene: Scene,
    _bus: Process,
    _service: Process,
}

fn stage() -> Stage {
    stage_with(&json!({}), &json!({}))
}

/// With these keys of the service, and these at the top.
fn stage_with(keys: &Value, top: &Value) -> Stage {
    let scene = Scene::new(keys);
    scene.configure(keys, top);
    let bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let service = scene.service(&mut client);
    Stage {
        client,
        scene,
        _bus: bus,
        _service: service,
    }
}

impl Stage {
    /// Sends a run with the call_id `r`.
    fn send(&mut self, steps: &Value) {
        self.client.send(RUN, &json!({ "steps": steps, "call_id": "r" }));
    }

    /// Runs steps to their answer.
    #[track_caller]
    fn run(&mut self, steps: &Value) -> Value {
        self.client.ask(RUN, &json!({ "steps": steps }))
    }

    /// The only answer of the run `r`.
    #[track_caller]
    fn answer(&mut self) -> Value {
        self.client.until_answered([&"r".to_owned()]);
        self.client.invoke("ping", &json!({}));
        self.client.settled("r")
    }

    #[track_caller]
    fn marks(&mut self) -> u64 {
        let counted = self.client.invoke("count_marks", &json!({}));
        counted["result"]["marks"].as_u64().unwrap()
    }
}

fn step(id: &str, name: &str, args: Value) -> Value {
    json!({ "id": id, "name": name, "args": args })
}

fn after(id: &str, name: &str, after: &[&str]) -> Value {
    json!({ "id": id, "name": name, "after": after })
}

/// Moves an arm until it is ended.
fn moves(id: &str, arm: &str) -> Value {
    step(
        id,
        "assemble",
        json!({ "subsystems": [arm], "step_ms": 2, "steps": 100_000, "timeout_ms": 300_000 }),
    )
}

/// The status of each step.
fn statuses(answer: &Value) -> String {
    let steps = answer["steps"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let line = |step: &Value| {
        format!(
            "{} {}",
            step["id"].as_str().unwrap(),
            step["status"].as_str().unwrap()
        )
    };
    steps.iter().map(line).collect::<Vec<_>>().join(", ")
}

#[track_caller]
fn ended(answer: &Value, kind: &str, expected: &str) {
    assert_eq!(statuses(answer), expected, "{answer}");
    assert_eq!(answer["ok"], false, "{answer}");
    let error = answer["error"].as_str().unwrap_or_default();
    assert!(error.starts_with(&format!("{kind}: ")), "no {kind}: {answer}");
    for step in answer["steps"].as_array().unwrap() {
        let began = step["status"] != "not_started";
        assert_eq!(step.get("reason").is_none(), began, "{step}");
    }
}

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
            "step 'a': 'after' names 'b', which is no step of this run",
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
        ("content", json!("inline"), "'content' of a run must be \"path\""),
        ("timeout_ms", json!(0), "'timeout_ms' must be"),
        (
            "call_id",
            json!("x".repeat(124)),
            "'call_id' and the longest id of a step must have at most 127",
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
fn after_a_step_that_fails_no_further_one_begins_and_those_that_run_finish() {
    let mut stage = stage();
    let cases = [
        ("fails", step("bad", "fail", json!({})), "RuntimeError", "failed"),
        (
            "is not valid",
            step("bad", "add", json!({ "a": "x" })),
            "ValueError",
            "failed",
        ),
        (
            "returns that it failed",
            step(
                "bad",
                "assemble",
                json!({ "subsystems": ["base"], "step_ms": 1, "steps": 1, "fail_at": "calibrate:base" }),
            ),
            "RuntimeError",
            "failed",
        ),
        (
            "ends too late",
            step(
                "bad",
                "assemble",
                json!({ "subsystems": ["base"], "step_ms": 1, "steps": 1, "hang_at": "calibrate:base", "timeout_ms": 10 }),
            ),
            "TimeoutError",
            "timed_out",
        ),
    ];
    for (what, bad, kind, status) in cases {
        let before = stage.marks();
        // One that is refused at once ends the run before the step beside it begins.
        let (beside, marked) = if what == "is not valid" {
            ("not_started", 0)
        } else {
            ("completed", 1)
        };
        let answer = stage.run(&json!([
            bad,
            step("beside", "set_mark", json!({ "ms": 1500 })),
            after("later", "set_mark", &["bad"]),
            after("last", "set_mark", &["beside"]),
        ]));
        ended(
            &answer,
            kind,
            &format!("bad {status}, beside {beside}, later not_started, last not_started"),
        );
        assert_eq!(stage.marks(), before + marked, "{what}");
        assert!(
            answer["error"].as_str().unwrap().contains("step 'bad'"),
            "{answer}"
        );
        let reason = answer["steps"][2]["reason"].as_str().unwrap();
        assert!(reason.starts_with("step 'bad' "), "{answer}");
    }
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
fn steps_that_are_ready_begin_together_and_a_cancel_ends_them() {
    let mut stage = stage();
    let steps = json!([
        step("a", "slow", json!({ "seconds": 300 })),
        moves("b", "left_arm"),
        step("c", "slow", json!({ "seconds": 300 })),
        after("later", "set_mark", &["a"]),
    ]);
    stage.send(&steps);
    // The run and its three steps.
    stage.client.until_phases(&[("running", 4)]);
    let status = stage.client.ask("ovos.tools.status", &json!({}));
    let calls = status["calls"].as_array().unwrap();
    let run = calls.iter().find(|call| call["call_id"] == "r").unwrap();
    assert_eq!(
        (
            &run["name"],
            &run["toolbox_id"],
            &run["effect"],
            &run["subsystems"]
        ),
        (&json!("run"), &json!("service"), &json!("motion"), &json!([])),
        "{run}"
    );
    stage.scene.until_moving("r:b");
    let taken = stage
        .client
        .ask(RUN, &json!({ "steps": steps, "call_id": "r", "detail": true }));
    assert_eq!(taken["error_detail"]["kind"], "ValueError", "{taken}");
    assert!(
        taken["error"].as_str().unwrap().contains("already in flight"),
        "{taken}"
    );
    stage.client.settled("r");
    let cancelled = stage.client.ask("ovos.tools.cancel", &json!({ "call_id": "r" }));
    assert_eq!(
        cancelled,
        json!({ "call_id": "r", "cancelled": true, "state": "running" })
    );
    let answer = stage.answer();
    ended(
        &answer,
        "CancelledError",
        "a cancelled, b cancelled, c cancelled, later not_started",
    );
    assert!(
        answer["steps"][3]["reason"]
            .as_str()
            .unwrap()
            .contains("cancelled by test"),
        "{answer}"
    );
    assert_still(from_first(&stage.scene.motors(), &["halt"]).expect("it is halted"));
    assert_eq!(stage.marks(), 0);
    let again = stage.client.ask("ovos.tools.cancel", &json!({ "call_id": "r" }));
    assert_eq!(again["state"], "ended", "{again}");
}

#[test]
fn what_ends_calls_ends_a_run() {
    for how in ["step", "user", "door", "emergency"] {
        let mut stage = stage();
        stage.client = Client::connect(stage.scene.port).in_session("mine");
        stage.send(&json!([
            moves("move", "left_arm"),
            step("wait", "slow", json!({ "seconds": 300 })),
            after("later", "set_mark", &["move"]),
        ]));
        stage.client.until_phases(&[("running", 3)]);
        stage.scene.until_moving("r:move");
        let wait = match how {
            "step" => {
                stage
                    .client
                    .ask("ovos.tools.cancel", &json!({ "call_id": "r:wait" }));
                // That one goes on.
                stage.client.until_phases(&[("running", 2)]);
                stage
                    .client
                    .ask("ovos.tools.cancel", &json!({ "call_id": "r:move" }));
                "cancelled"
            }
            "user" => {
                stage.client.send("ovos.stop", &json!({}));
                "cancelled"
            }
            "door" => {
                // It says that it is there, and never again.
                stage
                    .client
                    .send("ovos.tools.door.hello", &json!({ "name": "test" }));
                "cancelled"
            }
            _ => {
                stage.client.ask("ovos.tools.stop", &json!({}));
                "stopped"
            }
        };
        let answer = stage.answer();
        let kind = if wait == "stopped" {
            "EmergencyStop"
        } else {
            "CancelledError"
        };
        ended(
            &answer,
            kind,
            &format!("move {wait}, wait {wait}, later not_started"),
        );
        let halt = if wait == "stopped" { "emergency" } else { "halt" };
        assert_still(from_first(&stage.scene.motors(), &[halt]).expect("it is halted"));
        assert_eq!(stage.marks(), 0, "{how}");
    }
}

/// Also while no step moves: the next one might.
#[test]
fn a_door_that_falls_silent_ends_a_run_before_its_next_step_moves() {
    let mut stage = stage();
    stage.client = Client::connect(stage.scene.port).in_session("mine");
    let mut last = moves("move", "left_arm");
    last["after"] = json!(["wait"]);
    stage.send(&json!([step("wait", "slow", json!({ "seconds": 300 })), last]));
    stage.client.until_phases(&[("running", 2)]);
    stage
        .client
        .send("ovos.tools.door.hello", &json!({ "name": "test" }));
    ended(
        &stage.answer(),
        "CancelledError",
        "wait cancelled, move not_started",
    );
}

#[test]
fn a_step_that_waits_for_its_subsystems_is_ended_with_the_run() {
    let mut stage = stage();
    stage
        .client
        .call("holds", "assemble", &moves("", "left_arm")["args"]);
    stage.scene.until_moving("holds");
    stage.send(&json!([
        { "id": "other", "name": "dup", "toolbox_id": "testbed_dup" },
        moves("queued", "left_arm"),
    ]));
    stage.client.until_phases(&[("running", 2), ("queued", 1)]);
    stage
        .client
        .ask("ovos.tools.stop", &json!({ "toolbox_id": "testbed_dup" }));
    ended(
        &stage.answer(),
        "EmergencyStop",
        "other completed, queued cancelled",
    );
}

/// Not even one whose own toolbox was never stopped, and not after the stop is lifted.
#[test]
fn nothing_begins_after_an_emergency_stop_of_a_toolbox_of_the_run() {
    let mut stage = stage();
    stage.send(&json!([
        step("wait", "slow", json!({ "seconds": 2.5 })),
        after("later", "set_mark", &["wait"]),
        { "id": "other", "name": "dup", "toolbox_id": "testbed_dup", "after": ["later"] },
    ]));
    stage.client.until_phases(&[("running", 2)]);
    let stopped = stage
        .client
        .ask("ovos.tools.stop", &json!({ "toolbox_id": "testbed_dup" }));
    let stop_id = &stopped["toolboxes"][0]["stop_id"];
    let resume = json!({ "toolbox_id": "testbed_dup", "stop_id": stop_id });
    let resumed = stage.client.ask("ovos.tools.resume", &resume);
    assert_eq!(resumed["toolboxes"][0]["ok"], true, "{resumed}");
    let answer = stage.answer();
    ended(
        &answer,
        "EmergencyStop",
        "wait completed, later not_started, other not_started",
    );
    assert_eq!(stage.marks(), 0);
}

#[test]
fn a_run_with_an_emergency_stop_is_that_stop_whatever_else_is_wrong_with_it() {
    for (name, others) in [
        ("stop", json!([after("mark", "set_mark", &[])])),
        (
            "testbed__stop",
            json!([after("mark", "set_mark", &["nowhere"]), 7]),
        ),
    ] {
        let mut stage = stage();
        stage.client.call("moves", "assemble", &moves("", "base")["args"]);
        stage.scene.until_moving("moves");
        let mut steps = others.as_array().unwrap().clone();
        steps.push(after("stop", name, &["mark"]));
        let answer = stage.run(&json!(steps));
        ended(&answer, "EmergencyStop", "mark not_started, stop completed");
        stage.client.until_answered([&"moves".to_owned()]);
        assert_still(from_first(&stage.scene.motors(), &["emergency"]).expect("an emergency halt"));
        assert_eq!(stage.marks(), 0);
        let refused = stage.client.invoke("set_mark", &json!({}));
        assert!(
            refused["error"].as_str().unwrap().starts_with("EmergencyStop: "),
            "{refused}"
        );
    }
}

#[test]
fn a_timeout_bounds_the_whole_run_and_lets_what_brings_to_safety_finish() {
    let mut stage = stage();
    for (first, expected) in [
        (
            step("first", "slow", json!({ "seconds": 300 })),
            "first timed_out, later not_started",
        ),
        (
            step("first", "brake", json!({ "ms": 900 })),
            "first completed, later not_started",
        ),
    ] {
        let answer = stage.client.ask(
            RUN,
            &json!({ "timeout_ms": 300, "steps": [first, after("later", "set_mark", &["first"])] }),
        );
        ended(&answer, "TimeoutError", expected);
    }
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
    let text = waits["confirm"]["text"].as_str().unwrap();
    assert!(
        text.contains("@ left_arm"),
        "it was decided on the final arguments: {text}"
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
