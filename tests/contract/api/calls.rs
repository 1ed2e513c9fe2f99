//! Calls with an id, a timeout and progress, and their cancel.

use serde_json::{Value, json};

use crate::api::{INVOKE, assemble, start_assemble, start_slow, world};
use crate::support::contract::{World, expect};

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
fn too_many_waiting_calls_are_refused_with_the_holders() {
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
