//! What ends a run, and that nothing begins after it.

use serde_json::json;

use crate::run::{RUN, after, ended, moves, stage, step};
use crate::support::client::Client;
use crate::support::scene::{assert_still, from_first};

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
