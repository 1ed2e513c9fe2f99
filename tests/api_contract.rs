//! What the service answers beyond the published contract, over a real bus: calls that can be named, bounded, followed
//! and cancelled; plan and export; stop and resume; events and questions; and frames that are not what they should be.
//!
//! Every answer a test hears is checked against its schema in `schemas/bus`. Answers that need no story are rows of
//! tests/data/api_contract.json.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a failed test panics and prints"
)]

#[allow(dead_code, reason = "the helpers serve several test programs")]
mod support {
    pub(crate) mod contract;
    pub(crate) mod process;
}

use serde_json::{Value, json};
use support::contract::{Client, World, expect, meets};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

const INVOKE: &str = "ovos.tools.invoke";
const LATCHED: &str = "~EmergencyStop: Robot is in emergency stop state. Reset required.";

fn world() -> (World, Client) {
    let world = World::start(&json!({}));
    let client = world.client();
    (world, client)
}

/// A call that runs until it is ended: `slow` of effect read.
fn start_slow(client: &mut Client, call_id: &str) -> u64 {
    let n = client.send(
        INVOKE,
        json!({"name": "slow", "args": {"seconds": 300}, "call_id": call_id, "progress": true}),
    );
    client.progress(call_id, "action_started");
    n
}

/// A call that moves one arm until it is ended.
fn assemble(client: &mut Client, call_id: &str, more: &Value) -> u64 {
    let mut data = json!({
        "name": "assemble", "call_id": call_id, "progress": true,
        "args": {"subsystems": ["left_arm"], "step_ms": 600_000, "timeout_ms": 3_600_000},
    });
    data.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    client.send(INVOKE, data)
}

fn start_assemble(client: &mut Client, call_id: &str) -> u64 {
    let n = assemble(client, call_id, &json!({}));
    client.progress(call_id, "action_started");
    n
}

fn status_of(client: &mut Client, toolbox_id: &str) -> Value {
    let status = client.ask("ovos.tools.status", json!({}));
    let toolboxes = status["toolboxes"].as_array().unwrap();
    toolboxes
        .iter()
        .find(|t| t["toolbox_id"] == toolbox_id)
        .unwrap()
        .clone()
}

fn resume(client: &mut Client, toolbox_id: &str, stop_id: &Value) -> Value {
    let answer = client.ask(
        "ovos.tools.resume",
        json!({"toolbox_id": toolbox_id, "stop_id": stop_id}),
    );
    answer["toolboxes"][0].clone()
}

/// Lifts every latch, whatever holds it.
fn resume_all(client: &mut Client) {
    for toolbox_id in ["testbed", "testbed_dup"] {
        let status = status_of(client, toolbox_id);
        if status["latched"] == true {
            expect(
                "resume",
                &json!({"toolbox_id": toolbox_id, "ok": true}),
                &resume(client, toolbox_id, &status["stop_id"]),
            );
        }
    }
}

#[test]
fn answers_are_what_the_rows_say() {
    let (world, mut client) = world();
    let rows: Vec<Value> = serde_json::from_str(include_str!("data/api_contract.json")).unwrap();
    let mut wrong = Vec::new();
    for row in &rows {
        let answer = client.ask(row["topic"].as_str().unwrap(), row["data"].clone());
        if let Err(why) = meets(&row["answer"], &answer) {
            wrong.push(format!("{}: {why}", row["case"]));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} rows:\n{}\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n"),
        world.log()
    );
}

#[test]
fn every_tool_is_listed_and_can_be_called_by_each_of_its_names() {
    let (_world, mut client) = world();
    let listed = client.ask("ovos.tools.list", json!({"detail": true}));
    for tool in listed["tools"].as_array().unwrap() {
        expect(
            "list",
            &json!({
                "name": "*", "description": "*", "argument_schema": "*", "output_schema": "*", "toolbox_id": "*",
                "meta": {"category": "*", "effect": "*", "timeout_ms": "*", "subsystems": "*"},
            }),
            tool,
        );
        let (toolbox_id, name) = (
            tool["toolbox_id"].as_str().unwrap(),
            tool["name"].as_str().unwrap(),
        );
        let portable = ovos_tools::export::portable_name(toolbox_id, name);
        for alias in [format!("{toolbox_id}__{name}"), portable] {
            let found = client.ask("ovos.tools.get", json!({ "name": alias }));
            expect(
                &alias,
                &json!({"...": 0, "name": name, "toolbox_id": toolbox_id}),
                &found,
            );
        }
    }
    let plain = client.ask("ovos.tools.list", json!({"detail": "what is this"}));
    assert_eq!(
        plain["tools"].as_array().unwrap().len(),
        listed["tools"].as_array().unwrap().len()
    );
    assert!(
        plain["tools"]
            .as_array()
            .unwrap()
            .iter()
            .all(|tool| tool.get("meta").is_none())
    );
}

#[test]
fn a_list_is_filtered_by_toolbox_and_effect() {
    let (_world, mut client) = world();
    let names = |client: &mut Client, filter: Value| -> Vec<String> {
        let listed = client.ask("ovos.tools.list", filter);
        let tools = listed["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&mut client, json!({"effect": "motion"})), ["assemble"]);
    assert_eq!(
        names(
            &mut client,
            json!({"toolbox_id": "testbed_dup", "effect": "read"})
        ),
        ["dup"]
    );
    assert_eq!(
        names(
            &mut client,
            json!({"toolbox_id": "testbed_dup", "effect": "stop"})
        ),
        [""; 0]
    );
    assert_eq!(names(&mut client, json!({"toolbox_id": "elsewhere"})), [""; 0]);
    for (filter, expected) in [
        (
            json!({"effect": "moton"}),
            "~ValueError: 'effect' must be one of read, write, motion, safe, stop, resume, got \"moton\"",
        ),
        (
            json!({"toolbox_id": 5}),
            "~ValueError: 'toolbox_id' must be a string, got 5",
        ),
    ] {
        let listed = client.ask("ovos.tools.list", filter);
        expect("list", &json!({ "error": expected }), &listed);
    }
}

#[test]
fn tools_that_resume_are_for_an_operator() {
    let names = |tools: &Value| -> Vec<String> {
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        tools.as_array().unwrap().iter().map(name).collect()
    };
    for operator_tools in [false, true] {
        let world = World::start(&json!({"service": {"operator_tools": operator_tools}}));
        let mut client = world.client();
        let exported = client.ask("ovos.tools.export", json!({}));
        assert!(!names(&exported["tools"]).contains(&"reset_stop".to_owned()));
        client.send("ovos.persona.tools.discover", json!({}));
        for toolbox_id in ["testbed", "testbed_dup"] {
            let answer = client.until(toolbox_id, |frame| {
                frame["type"] == "ovos.persona.tools.discover.response"
                    && frame["data"]["toolbox_id"] == toolbox_id
            });
            assert!(!names(&answer["data"]["tools"]).contains(&"reset_stop".to_owned()));
        }

        client.ask("ovos.tools.stop", json!({"toolbox_id": "testbed"}));
        let older = client.invoke("reset_stop", json!({"stop_id": "an older one"}));
        expect(
            "an older stop_id",
            &json!({"name": "reset_stop", "error": "*"}),
            &older,
        );
        let answer = client.invoke("reset_stop", json!({}));
        let latched = status_of(&mut client, "testbed")["latched"].clone();
        if operator_tools {
            expect(
                "reset",
                &json!({"name": "reset_stop", "result": {"...": 0, "success": true}}),
                &answer,
            );
            assert_eq!(latched, false);
        } else {
            expect(
                "reset",
                &json!({"name": "reset_stop", "error": "~PermissionError: "}),
                &answer,
            );
            assert_eq!(latched, true);
        }
    }
}

#[test]
fn a_call_id_is_taken_while_its_call_is_in_flight() {
    let (_world, mut client) = world();
    let first = start_slow(&mut client, "mine");
    let taken = client.ask(INVOKE, json!({"name": "ping", "call_id": "mine"}));
    expect(
        "taken",
        &json!({"name": "ping", "call_id": "mine", "error": "~ValueError: call_id `mine` is already in flight"}),
        &taken,
    );
    let cancelled = client.ask("ovos.tools.cancel", json!({"call_id": "mine"}));
    expect(
        "cancel",
        &json!({"call_id": "mine", "cancelled": true, "state": "running"}),
        &cancelled,
    );
    expect(
        "the call",
        &json!({"name": "slow", "call_id": "mine", "error": "~CancelledError: "}),
        &client.answer(first),
    );
    let again = client.ask("ovos.tools.cancel", json!({"call_id": "mine"}));
    expect(
        "cancel again",
        &json!({"call_id": "mine", "cancelled": false, "state": "ended", "error": "~ValueError: call 'mine' has already ended"}),
        &again,
    );
    let free = client.ask(INVOKE, json!({"name": "ping", "call_id": "mine"}));
    expect(
        "free",
        &json!({"name": "ping", "call_id": "mine", "result": {"pong": true}}),
        &free,
    );
}

#[test]
fn a_waiting_call_is_seen_bounded_and_cancelled() {
    let (_world, mut client) = world();
    let holder = start_assemble(&mut client, "holder");
    let waiting = assemble(&mut client, "waiting", &json!({}));
    let queued = client.progress("waiting", "queued");
    expect(
        "queued",
        &json!({"...": 0, "seq": 1, "wave": 0, "waves": 0, "message": "*"}),
        &queued["data"],
    );
    let status = client.ask("ovos.tools.status", json!({}));
    let line = |id: &str, phase: &str| {
        json!({"...": 0, "call_id": id, "name": "assemble", "toolbox_id": "testbed", "phase": phase,
               "effect": "motion", "subsystems": ["left_arm"], "generation": 1})
    };
    expect(
        "calls",
        &json!([line("holder", "running"), line("waiting", "queued")]),
        &status["calls"],
    );

    let bounded = assemble(&mut client, "bounded", &json!({"timeout_ms": 50, "detail": true}));
    expect(
        "timeout_ms counts the waiting",
        &json!({"name": "assemble", "call_id": "bounded", "error": "TimeoutError: not done within its timeout of 50 ms",
                "error_detail": {"kind": "TimeoutError"}}),
        &client.answer(bounded),
    );
    let cancelled = client.ask("ovos.tools.cancel", json!({"call_id": "waiting"}));
    expect(
        "cancel",
        &json!({"call_id": "waiting", "cancelled": true, "state": "queued"}),
        &cancelled,
    );
    expect(
        "never ran",
        &json!({"name": "assemble", "call_id": "waiting", "error": "~CancelledError: cancelled by contract test"}),
        &client.answer(waiting),
    );
    client.ask("ovos.tools.cancel", json!({"call_id": "holder"}));
    expect(
        "its toolbox says how far it came",
        &json!({"name": "assemble", "call_id": "holder", "result": {
            "success": false, "completed": [], "skipped": [], "simulated": true,
            "failed": ["calibrate:left_arm cancelled", "move:left_arm cancelled", "join cancelled", "retract:left_arm cancelled"]}}),
        &client.answer(holder),
    );
}

#[test]
fn a_safe_call_takes_the_place_of_motion_and_is_not_cancelled() {
    let (_world, mut client) = world();
    let moving = start_assemble(&mut client, "moving");
    let safe = client.send(
        INVOKE,
        json!({"name": "brake", "args": {"ms": 1500}, "call_id": "safe", "progress": true}),
    );
    expect(
        "its place is taken",
        &json!({"...": 0, "call_id": "moving", "result": {"...": 0, "success": false}}),
        &client.answer(moving),
    );
    client.progress("safe", "action_started");
    let cancelled = client.ask("ovos.tools.cancel", json!({"call_id": "safe"}));
    expect(
        "cancel",
        &json!({"call_id": "safe", "cancelled": true, "state": "running"}),
        &cancelled,
    );
    expect(
        "it goes on to its end state",
        &json!({"name": "brake", "call_id": "safe", "result": {"held_ms": 1500}}),
        &client.answer(safe),
    );
}

#[test]
fn what_is_too_much_is_refused_and_says_who_is_in_the_way() {
    let service = json!({"max_calls": 3, "max_waiting": 1, "max_wait_ms": 2000, "answer_as_phal": true});
    let world = World::start(&json!({ "service": service }));
    let mut client = world.client();
    let holder = start_assemble(&mut client, "holder");
    let waiting = assemble(&mut client, "waiting", &json!({}));
    client.progress("waiting", "queued");
    let full = assemble(&mut client, "full", &json!({"detail": true}));
    expect(
        "the queue is full",
        &json!({"...": 0, "error": "~holder", "error_detail": {"kind": "BusyError"}}),
        &client.answer(full),
    );
    expect(
        "waited too long",
        &json!({"...": 0, "error": "~left_arm did not become free within 2000 ms; held by "}),
        &client.answer(waiting),
    );
    let slow = [start_slow(&mut client, "a"), start_slow(&mut client, "b")];
    expect(
        "too many calls",
        &json!({"name": "ping", "error": "~BusyError: 3 calls are in flight, which is the limit (service.max_calls)"}),
        &client.invoke("ping", json!({})),
    );
    expect(
        "what brings it to safety is not turned away",
        &json!({"name": "brake", "result": {"held_ms": 1}}),
        &client.invoke("brake", json!({"ms": 1})),
    );
    client.answer(holder);
    client.send("ovos.stop", json!({}));
    for n in slow {
        client.answer(n);
    }
    expect(
        "answer_as_phal",
        &json!({"status": true}),
        &client.ask("mycroft.PHAL.is_ready", json!({})),
    );
}

#[test]
fn a_call_that_is_too_slow_times_out() {
    let (_world, mut client) = world();
    let answer = client.ask(
        INVOKE,
        json!({"name": "slow", "args": {"seconds": 300}, "timeout_ms": 1000, "detail": true}),
    );
    expect(
        "invoke",
        &json!({"name": "slow", "error": "~TimeoutError: ", "error_detail": {"...": 0, "kind": "TimeoutError",
            "report": {"...": 0, "outcome": "timed_out", "actions": [{"...": 0, "id": "slow"}]}}}),
        &answer,
    );
    let answer = client.ask(
        "ovos.persona.tools.call",
        json!({"toolbox_id": "testbed", "name": "slow", "kwargs": {"seconds": 300}, "timeout_ms": 1000}),
    );
    expect(
        "call",
        &json!({"toolbox_id": "testbed", "error": "~TimeoutError: "}),
        &answer,
    );
}

#[test]
fn progress_is_in_order_and_never_after_the_answer() {
    let (_world, mut client) = world();
    let call = |progress: bool| {
        json!({"name": "assemble", "call_id": "p", "progress": progress,
               "args": {"subsystems": ["left_arm", "right_arm"], "step_ms": 1, "steps": 2}})
    };
    let silent = client.send(INVOKE, call(false));
    client.answer(silent);
    assert!(
        client
            .take(|frame| frame["type"] == "ovos.tools.invoke.progress")
            .is_empty()
    );

    let n = client.send(INVOKE, call(true));
    let answer = client.answer(n);
    expect(
        "assemble",
        &json!({"...": 0, "result": {"...": 0, "success": true}}),
        &answer,
    );
    let steps = client.take(|frame| frame["type"] == "ovos.tools.invoke.progress");
    client.invoke("ping", json!({}));
    let late = client.take(|frame| frame["type"] == "ovos.tools.invoke.progress");
    assert!(late.is_empty(), "after the answer: {late:?}");

    let seqs: Vec<u64> = steps
        .iter()
        .map(|step| step["data"]["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs, (1..=steps.len() as u64).collect::<Vec<_>>());
    let of_kind = |kind: &str| {
        steps
            .iter()
            .filter(|step| step["data"]["kind"] == kind)
            .map(|step| step["data"].clone())
            .collect::<Vec<_>>()
    };
    let waves: Vec<u64> = of_kind("wave")
        .iter()
        .map(|step| step["wave"].as_u64().unwrap())
        .collect();
    assert_eq!(waves, [1, 2, 3, 4]);
    assert_eq!(of_kind("action_started").len(), 7);
    assert!(!of_kind("update").is_empty());
    for ended in of_kind("action_ended") {
        expect(
            "ended",
            &json!({"...": 0, "call_id": "p", "waves": 4, "outcome": "completed", "action": "*"}),
            &ended,
        );
    }
    let started = |action: &Value| {
        steps
            .iter()
            .position(|step| step["data"]["action"] == *action && step["data"]["kind"] == "action_started")
    };
    let ended = |action: &Value| {
        steps
            .iter()
            .position(|step| step["data"]["action"] == *action && step["data"]["kind"] == "action_ended")
    };
    assert!(ended(&json!("move:right_arm")) < started(&json!("join")));
    assert!(started(&json!("join")) < ended(&json!("join")));
    for step in &steps {
        assert_eq!(
            step["context"]["n"], n,
            "progress travels in the request's context"
        );
    }
}

#[test]
fn a_stop_latches_and_says_what_it_reached() {
    let (_world, mut client) = world();
    let moving = start_assemble(&mut client, "moving");
    let queued = assemble(&mut client, "queued", &json!({}));
    client.progress("queued", "queued");
    let stopped = client.ask("ovos.tools.stop", json!({"toolbox_id": "testbed"}));
    expect(
        "stop",
        &json!({"toolboxes": [{"toolbox_id": "testbed", "ok": true, "stop_id": "*"}]}),
        &stopped,
    );
    expect(
        "moving",
        &json!({"...": 0, "result": {"...": 0, "success": false, "completed": []}}),
        &client.answer(moving),
    );
    expect(
        "queued",
        &json!({"...": 0, "error": "~EmergencyStop: "}),
        &client.answer(queued),
    );

    let stop_id = &stopped["toolboxes"][0]["stop_id"];
    expect(
        "status",
        &json!({"...": 0, "latched": true, "stop_id": stop_id, "stop_reason": "ovos.tools.stop from contract test"}),
        &status_of(&mut client, "testbed"),
    );
    assert_eq!(status_of(&mut client, "testbed_dup")["latched"], false);
    let cases = [
        ("assemble", json!({}), json!({"error": LATCHED})),
        ("set_mark", json!({}), json!({"error": LATCHED})),
        ("count_marks", json!({}), json!({"result": {"marks": 0}})),
        ("brake", json!({"ms": 1}), json!({"result": {"held_ms": 1}})),
    ];
    for (name, args, mut expected) in cases {
        expected["name"] = json!(name);
        expect(name, &expected, &client.invoke(name, args));
    }
    expect(
        "detail",
        &json!({"...": 0, "error_detail": {"...": 0, "kind": "EmergencyStop"}}),
        &client.ask(INVOKE, json!({"name": "assemble", "detail": true})),
    );
}

#[test]
fn what_cannot_be_understood_stops_everything() {
    let (_world, mut client) = world();
    let both = json!({"toolboxes": [{"...": 0, "toolbox_id": "testbed", "ok": true}, {"...": 0, "toolbox_id": "testbed_dup", "ok": true}]});
    for data in [
        json!({}),
        json!(null),
        json!({"toolbox_id": null}),
        json!({"toolbox_id": 5}),
        json!({"toolbox_id": ["testbed"]}),
        json!({"toolbox_id": "nope"}),
        json!({"toolbox_id": ""}),
        json!({"toolbox": "testbed"}),
        // This much is not read before the machine stands still.
        json!({"padding": "x".repeat(100 << 10), "toolbox_id": "testbed"}),
    ] {
        expect(&data.to_string(), &both, &client.ask("ovos.tools.stop", data));
        resume_all(&mut client);
    }
    // There is no sender to answer here, but the machine stands still.
    for frame in [
        r#"{"type": "ovos.tools.stop""#,
        r#"{"type": "ovos.tools.stop", "data": []}"#,
        r#"{"type": "ovos.tools.stop", "data": {"toolbox_id": NaN}}"#,
        r#"{"type":"ovos.tools.stop","data":{"toolbox_id":"testbed"},"context":5}"#,
        r#"{"context": {}, "data": {}, "type": "ovos.tools.stop"}"#,
    ] {
        let moving = start_assemble(&mut client, "moving");
        client.say(frame);
        client.answer(moving);
        for toolbox_id in ["testbed", "testbed_dup"] {
            assert_eq!(status_of(&mut client, toolbox_id)["latched"], true, "{frame}");
        }
        resume_all(&mut client);
    }
    // A tool of effect stop is a stop, whatever its arguments are.
    for data in [
        json!({"name": "stop"}),
        json!({"name": "stop", "args": [5]}),
        json!({"name": "stop", "toolbox_id": "nope"}),
        json!({"name": "stop", "toolbox_id": "testbed_dup"}),
        json!({"name": "stop", "toolbox_id": 7, "call_id": "", "timeout_ms": "x", "detail": 9}),
    ] {
        let moving = start_assemble(&mut client, "moving");
        let answer = client.ask(INVOKE, data.clone());
        expect(
            &data.to_string(),
            &json!({"name": "stop", "result": {"...": 0, "success": true, "stop_id": "*"}}),
            &answer,
        );
        client.answer(moving);
        assert_eq!(status_of(&mut client, "testbed")["latched"], true, "{data}");
        resume_all(&mut client);
    }
}

#[test]
fn only_the_stop_that_holds_is_lifted_and_only_when_the_toolbox_agrees() {
    let (_world, mut client) = world();
    let stop = |client: &mut Client| {
        client.ask("ovos.tools.stop", json!({"toolbox_id": "testbed"}))["toolboxes"][0]["stop_id"].clone()
    };
    let older = stop(&mut client);
    let newer = stop(&mut client);
    assert_ne!(older, newer);
    for wrong in [&older, &json!("made up")] {
        expect(
            "wrong stop_id",
            &json!({"toolbox_id": "testbed", "ok": false, "error": "~is not the stop that holds it"}),
            &resume(&mut client, "testbed", wrong),
        );
    }
    client.invoke("configure", json!({"refuse_resume": true}));
    expect(
        "refused",
        &json!({"toolbox_id": "testbed", "ok": false, "error": "~the button is still pressed"}),
        &resume(&mut client, "testbed", &newer),
    );
    assert_eq!(status_of(&mut client, "testbed")["latched"], true);
    client.invoke("configure", json!({"refuse_resume": false}));
    expect(
        "resumed",
        &json!({"toolbox_id": "testbed", "ok": true}),
        &resume(&mut client, "testbed", &newer),
    );
    expect(
        "twice",
        &json!({"toolbox_id": "testbed", "ok": false, "error": "~it is not in emergency stop state"}),
        &resume(&mut client, "testbed", &newer),
    );
    expect(
        "works again",
        &json!({"...": 0, "result": {"marks": 1}}),
        &client.invoke("set_mark", json!({})),
    );
}

#[test]
fn the_users_stop_ends_the_calls_of_its_session() {
    let (_world, mut client) = world();
    let call = |id: &str| json!({"name": "slow", "args": {"seconds": 300}, "call_id": id, "progress": true});
    let start = |client: &mut Client, session: &str, id: &str| {
        let n = client.send_in(session, INVOKE, call(id));
        client.progress(id, "action_started");
        n
    };
    let kitchen = start(&mut client, "kitchen", "k");
    let garden = start(&mut client, "garden", "g");
    let nowhere = start(&mut client, "", "n");
    let cancelled = json!({"...": 0, "error": "~CancelledError: the user said stop"});
    client.send_in("kitchen", "ovos.stop", json!({}));
    expect("kitchen", &cancelled, &client.answer(kitchen));
    client.invoke("ping", json!({}));
    assert_eq!(client.answered(garden).or(client.answered(nowhere)), None);
    client.send_in("default", "mycroft.stop", json!({}));
    expect("garden", &cancelled, &client.answer(garden));
    expect("nowhere", &cancelled, &client.answer(nowhere));
    assert_eq!(status_of(&mut client, "testbed")["latched"], false);
}

#[test]
fn events_reach_the_bus() {
    let (_world, mut client) = world();
    client.invoke(
        "emit_event",
        json!({"kind": "low_battery", "severity": "warning", "data": {"level": 0.1}}),
    );
    let event = client.until("an event", |frame| frame["type"] == "ovos.tools.event");
    expect(
        "event",
        &json!({"toolbox_id": "testbed", "kind": "low_battery", "severity": "warning", "data": {"level": 0.1}, "ts": "*"}),
        &event["data"],
    );
}

#[test]
fn toolboxes_ask_and_listen_on_the_bus() {
    let (_world, mut client) = world();
    let asking = client.send(
        INVOKE,
        json!({"name": "ask", "args": {"data": {"what": "time"}, "timeout_ms": 30_000}}),
    );
    let question = client.until("the question", |frame| frame["type"] == "testbed.question");
    assert_eq!(question["data"], json!({"what": "time"}));
    let session = &question["context"]["session"]["session_id"];
    let answer = |session: &Value, time: &str| {
        json!({"type": "testbed.question.response", "data": {"time": time},
               "context": {"source": "contract test", "session": {"session_id": session}}})
        .to_string()
    };
    client.say(&answer(&json!("another"), "wrong"));
    client.say(&answer(session, "noon"));
    expect(
        "ask",
        &json!({"name": "ask", "result": {"answer": {"time": "noon"}}}),
        &client.answer(asking),
    );
    let unanswered = client.invoke("ask", json!({"timeout_ms": 20}));
    expect(
        "no answer comes",
        &json!({"name": "ask", "error": "~no answer to `testbed.question` came within 20 ms"}),
        &unanswered,
    );

    client.send("testbed.message", json!({"n": 1}));
    let heard = (0..1000)
        .map(|_| client.invoke("last_message", json!({})))
        .find(|answer| answer["result"]["count"] != 0);
    expect(
        "subscription",
        &json!({"name": "last_message", "result": {"topic": "testbed.message", "data": {"n": 1}, "count": 1}}),
        &heard.expect("the message arrives"),
    );
}

#[test]
fn requests_that_cannot_be_read_get_an_error() {
    let (_world, mut client) = world();
    let deep = format!("{}{}", r#"{"a":"#.repeat(200), "1".to_owned() + &"}".repeat(200));
    let rows = [
        (INVOKE, json!({"name": "", "error": "~nested 2"})),
        ("ovos.tools.plan", json!({"name": "", "error": "~nested 2"})),
        (
            "ovos.tools.get",
            json!({"error": "~ValueError: the request's data cannot be read: \"data\" is nested 200 levels deep"}),
        ),
        ("ovos.tools.export", json!({"error": "~nested 2"})),
        (
            "ovos.tools.cancel",
            json!({"call_id": "", "cancelled": false, "state": "unknown", "error": "~nested 2"}),
        ),
        (
            "ovos.tools.resume",
            json!({"toolboxes": [{"toolbox_id": "", "ok": false, "error": "~nested 2"}]}),
        ),
        (
            "ovos.persona.tools.testbed.call",
            json!({"toolbox_id": "testbed", "error": "~nested 2"}),
        ),
        // These have no use for data.
        ("ovos.tools.list", json!({"tools": "*"})),
        ("ovos.tools.status", json!({"...": 0, "calls": []})),
        ("mycroft.ovos_tools.is_alive", json!({"status": true})),
        // A stop is a stop.
        (
            "ovos.tools.stop",
            json!({"toolboxes": [{"...": 0, "toolbox_id": "testbed"}, {"...": 0, "toolbox_id": "testbed_dup"}]}),
        ),
    ];
    for (topic, expected) in rows {
        let context = client.context();
        client.say(&format!(
            r#"{{"type":"{topic}","data":{deep},"context":{context}}}"#
        ));
        let n = client.last();
        expect(topic, &expected, &client.answer(n));
    }
    // What is not nested can be read.
    let read =
        format!(r#"{{"name":"echo","toolbox_id":"testbed","call_id":"deep","stop_id":"s","args":{deep}}}"#);
    let rows = [
        (
            INVOKE,
            json!({"name": "echo", "call_id": "deep", "error": "~nested 2"}),
        ),
        ("ovos.tools.plan", json!({"name": "echo", "error": "~nested 2"})),
        (
            "ovos.persona.tools.call",
            json!({"toolbox_id": "testbed", "call_id": "deep", "error": "~nested 2"}),
        ),
        (
            "ovos.tools.cancel",
            json!({"call_id": "deep", "cancelled": false, "state": "unknown", "error": "~nested 2"}),
        ),
        (
            "ovos.tools.resume",
            json!({"toolboxes": [{"toolbox_id": "testbed", "ok": false, "error": "~nested 2"}]}),
        ),
    ];
    for (topic, expected) in rows {
        let context = client.context();
        client.say(&format!(
            r#"{{"type":"{topic}","data":{read},"context":{context}}}"#
        ));
        let n = client.last();
        expect(topic, &expected, &client.answer(n));
    }
    let context = client.context();
    client.say(&format!(
        r#"{{"type":"{INVOKE}","data":{{"name":"testbed__stop","args":{deep}}},"context":{context}}}"#
    ));
    let n = client.last();
    let stopped = client.answer(n);
    assert_eq!(
        stopped["result"]["success"], true,
        "a stop is not refused for its arguments: {stopped}"
    );
    for topic in ["ovos.persona.tools.call", "ovos.persona.tools.nope.call"] {
        let context = client.context();
        client.say(&format!(
            r#"{{"type":"{topic}","data":{deep},"context":{context}}}"#
        ));
        let n = client.last();
        client.invoke("ping", json!({}));
        assert_eq!(
            client.answered(n),
            None,
            "{topic} may be meant for another service"
        );
    }
}

#[test]
fn what_is_too_large_gets_a_small_error() {
    let (world, mut client) = world();
    let text = "x".repeat(9 << 20);
    let answer = client.invoke("echo", json!({ "text": text }));
    expect(
        "a result above max_result_bytes",
        &json!({"name": "echo", "error": "~8388608"}),
        &answer,
    );
    // The name would be in the answer twice.
    let name = "n".repeat(13 << 20);
    let answer = client.ask(INVOKE, json!({ "name": name, "call_id": "large" }));
    expect(
        "an answer above max_msg_size",
        &json!({"name": "", "call_id": "large", "error": "~websocket.max_msg_size"}),
        &answer,
    );
    let mut other = world.client();
    let slow = start_slow(&mut client, "s");
    let frame = json!({"type": INVOKE, "data": {"name": "x".repeat(26 << 20)}, "context": {}});
    // The bus closes the connection of who sends this; the error may come while it is still being written.
    let _ = other.put(Message::text(frame.to_string()));
    other.until_closed();
    client.ask("ovos.tools.cancel", json!({"call_id": "s"}));
    expect(
        "slow",
        &json!({"...": 0, "error": "~CancelledError"}),
        &client.answer(slow),
    );
}

#[test]
fn unknown_keys_and_repeated_ones_are_no_harm() {
    let (_world, mut client) = world();
    let rows = [
        r#"{"type":"ovos.tools.invoke","data":{"name":"ping","colour":"red"},"context":%,"id":[1],"version":{}}"#,
        r#"{"type":"ovos.tools.list","data":{"name":"ping"},"context":%,"type":"ovos.tools.invoke"}"#,
        r#"{"data":{"name":"nope"},"context":{},"type":"ovos.tools.invoke","data":{"name":"ping"},"context":%}"#,
        r#" { "context" : % , "type" : "ovos.tools.\u0069nvoke" , "data" : {"name":"ping"} } "#,
    ];
    for row in rows {
        let context = client.context().to_string();
        client.say(&row.replace('%', &context));
        let n = client.last();
        expect(
            row,
            &json!({"name": "ping", "result": {"pong": true}}),
            &client.answer(n),
        );
    }
}

#[test]
fn malformed_frames_do_not_disturb_a_call() {
    let (world, mut client) = world();
    let slow = start_slow(&mut client, "s");
    let levels = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let frames = [
        Message::text(""),
        Message::text("hello"),
        Message::text("{"),
        Message::text("[]"),
        Message::text("null"),
        Message::text(r#"{"type":5}"#),
        Message::text(r#"{"type":"ovos.tools.cancel","data":[],"context":{}}"#),
        Message::text(r#"{"type":"ovos.tools.cancel","data":{"call_id":"s"},"context":[]}"#),
        Message::text(r#"{"type":"ovos.tools.cancel","data":{"call_id":"s"},"context":{"session":5}}"#),
        Message::text(r#"{"type":"ovos.tools.cancel","data":{"call_id":"s"}"#),
        Message::text(r#"{"type":"ovos.tools.cancel","data":{"call_id":"s","x":NaN}}"#),
        Message::text(r#"{"type":"ovos.tools.cancel","type":"ovos.tools.nothing","data":{"call_id":"s"}}"#),
        Message::text(format!(
            r#"{{"type":"ovos.tools.invoke","data":{}}}"#,
            levels(100_000)
        )),
        Message::text(format!(
            r#"{{"type":"ovos.tools.invoke","data":{{"x":{}}}}}"#,
            levels(100_000)
        )),
        Message::text(format!(
            r#"{{"type":"ovos.tools.cancel","data":{{"call_id":"s"}},"context":{{"x":{}}}}}"#,
            levels(100_000)
        )),
        Message::text(levels(100_000)),
        Message::binary(vec![0, 255, 254]),
        Message::Frame(Frame::message(vec![b'{'], OpCode::Data(Data::Text), false)),
    ];
    for frame in frames {
        let what = format!("{frame:.80?}");
        // Of its own, because the bus may close the connection of who sends such things.
        let mut other = world.client();
        let _ = other.put(frame);
        let ping = client.invoke("ping", json!({}));
        expect(&what, &json!({"name": "ping", "result": {"pong": true}}), &ping);
        assert_eq!(client.answered(slow), None, "{what}");
    }

    let context = client.context();
    let whole = json!({"type": INVOKE, "data": {"name": "echo", "args": {"text": "é"}}, "context": context})
        .to_string()
        .into_bytes();
    for (at, byte) in whole.iter().enumerate() {
        let kind = if at == 0 { Data::Text } else { Data::Continue };
        let last = at + 1 == whole.len();
        let frame = Frame::message(vec![*byte], OpCode::Data(kind), last);
        client.put(Message::Frame(frame)).unwrap();
    }
    let n = client.last();
    expect(
        "fragments",
        &json!({"name": "echo", "result": {"text": "é"}}),
        &client.answer(n),
    );

    client.ask("ovos.tools.cancel", json!({"call_id": "s"}));
    expect(
        "slow",
        &json!({"...": 0, "error": "~CancelledError"}),
        &client.answer(slow),
    );
}

#[test]
fn a_thousand_slow_calls_delay_nothing_else() {
    let (_world, mut client) = world();
    let call = json!({"name": "slow", "args": {"seconds": 300}});
    let slow: Vec<u64> = (0..1000).map(|_| client.send(INVOKE, call.clone())).collect();
    for (topic, data, expected) in [
        ("ovos.tools.list", json!({}), json!({"tools": "*"})),
        (
            "ovos.tools.get",
            json!({"name": "ping"}),
            json!({"...": 0, "name": "ping"}),
        ),
        (
            INVOKE,
            json!({"name": "ping"}),
            json!({"name": "ping", "result": {"pong": true}}),
        ),
        (
            "ovos.tools.stop",
            json!({"toolbox_id": "testbed_dup"}),
            json!({"toolboxes": [{"...": 0, "ok": true}]}),
        ),
        ("ovos.tools.cancel", json!({"call_id": "x"}), json!({"...": 0})),
    ] {
        expect(topic, &expected, &client.ask(topic, data));
    }
    let status = client.ask("ovos.tools.status", json!({}));
    assert_eq!(status["calls"].as_array().unwrap().len(), 1000);
    client.send("ovos.stop", json!({}));
    for n in slow {
        expect(
            "slow",
            &json!({"name": "slow", "error": "~CancelledError"}),
            &client.answer(n),
        );
    }
    client.invoke("ping", json!({}));
    let more = client.take(|frame| frame["type"] == "ovos.tools.invoke.response");
    assert!(more.is_empty(), "answered twice: {more:?}");
}

#[test]
fn a_call_id_is_echoed_also_where_another_key_is_wrong() {
    let (_world, mut client) = world();
    expect(
        "a wrong timeout",
        &json!({"name": "ping", "call_id": "mine", "error": "~ValueError: 'timeout_ms' must be"}),
        &client.ask(
            INVOKE,
            json!({"name": "ping", "call_id": "mine", "timeout_ms": 0}),
        ),
    );
}
