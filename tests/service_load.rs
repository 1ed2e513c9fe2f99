//! A thousand calls under way delay neither other requests nor a stop, and each of them is answered once.

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

use std::time::{Duration, Instant};

use serde_json::json;
use support::client::Client;
use support::scene::{Scene, assert_still, from_first, monotonic_ns};
use support::service::BusKind;

const CALLS: usize = 1000;

/// The time limit of a request: far less than the calls, which take 300 s, and enough for a slow and busy machine.
const PROMPT: Duration = Duration::from_secs(10);

#[test]
fn a_thousand_slow_calls_delay_nothing() {
    let scene = Scene::new(&json!({}));
    let _bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let service = scene.service(&mut client);
    let calls: Vec<String> = (0..CALLS).map(|n| format!("slow-{n}")).collect();
    for call_id in &calls {
        client.call(call_id, "slow", &json!({ "seconds": 300 }));
    }
    client.until_phases(&[("running", CALLS)]);

    // Another client, so that no answer waits behind messages that this one has not read.
    let mut other = Client::connect(scene.port);
    let rows = [
        ("ovos.tools.list", json!({})),
        ("ovos.tools.get", json!({ "name": "add" })),
        ("ovos.tools.invoke", json!({ "name": "ping" })),
        ("ovos.tools.plan", json!({ "name": "assemble" })),
        ("ovos.tools.status", json!({})),
        ("mycroft.ovos_tools.is_alive", json!({})),
        ("ovos.tools.cancel", json!({ "call_id": calls[0] })),
    ];
    for (topic, data) in &rows {
        for _ in 0..5 {
            let asked = Instant::now();
            let answer = other.ask_within(topic, data, PROMPT);
            assert!(
                answer.is_some(),
                "{topic}: no answer within {PROMPT:?}\n{}",
                service.log()
            );
            assert!(asked.elapsed() < PROMPT, "{topic} took {:?}", asked.elapsed());
        }
    }

    other.call(
        "motion",
        "assemble",
        &json!({ "step_ms": 5, "steps": 100_000, "timeout_ms": 300_000 }),
    );
    scene.until_moving("motion");
    let asked_at = monotonic_ns();
    let stopped = other
        .ask_within("ovos.tools.stop", &json!({}), PROMPT)
        .expect("a prompt answer to a stop");
    assert_eq!(stopped["toolboxes"][0]["ok"], true, "{stopped}");
    let motors = scene.motors();
    let stopped = from_first(&motors, &["emergency"]).expect("the emergency halt");
    assert_still(stopped);
    let took = Duration::from_nanos(stopped[0].at - asked_at);
    assert!(took < PROMPT, "the motors were stopped after {took:?}");

    client.until_answered(&calls);
    client.invoke("ping", &json!({}));
    for call_id in &calls[1..] {
        let answer = client.only_answer(call_id);
        assert!(
            answer["error"].as_str().unwrap().starts_with("EmergencyStop: "),
            "{answer}"
        );
    }
    let first = client.only_answer(&calls[0])["error"].as_str().unwrap();
    assert!(first.starts_with("CancelledError: "), "{first}");
}
