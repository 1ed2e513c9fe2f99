//! The bus is killed and started again while calls run: every call is answered exactly once, and motion is brought to
//! rest if the bus stays away, unless the configuration lets it continue.
//!
//! The bus is killed while no answer is on its way: messages that it has accepted and not yet passed on are lost, and
//! no client can know that. The service is frozen while the bus starts, so that the client reconnects before the
//! answers are sent: a bus stores nothing for a disconnected client.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::support::process::DEADLINE;
use crate::support::python::python;
use crate::support::scene::{Scene, assert_halted, from_first, monotonic_ns};
use crate::support::service::BusKind;
use crate::support::stage::Stage;
use rustix::process::Signal;
use serde_json::{Value, json};

const SEED: u64 = 0x000b_0550_0106;

impl Stage {
    /// Kills the bus, waits for `meanwhile`, and brings it back.
    fn outage(&mut self, kind: BusKind, meanwhile: impl FnOnce(&Scene)) {
        self.bus.kill();
        meanwhile(&self.scene);
        self.service.signal(Signal::STOP);
        self.bus = self.scene.bus_started(kind);
        self.client.reconnect();
        self.service.signal(Signal::CONT);
    }
}

/// Four actions one after the other, about a second and a half together.
fn one_armed() -> Value {
    json!({ "subsystems": ["base"], "step_ms": 80, "steps": 4 })
}

/// 200 calls of `slow`, and one of `assemble` that is allowed to continue. The bus stays away until its motor log is
/// complete; some of the slow calls end before and others after that.
fn slow_calls_survive(kind: BusKind) {
    let mut stage = Stage::on(kind, &json!({ "on_bus_loss": "continue", "on_bus_loss_ms": 100 }));

    let mut random = fastrand::Rng::with_seed(SEED);
    let calls: Vec<String> = (0..200).map(|n| format!("slow-{n}")).collect();
    for call_id in &calls {
        // They end between shortly before and long after the end of the outage; none is answered before the bus is
        // killed.
        let seconds = 1.5 + 2.0 * random.f64();
        stage.client.call(call_id, "slow", &json!({ "seconds": seconds }));
    }
    stage.client.call("motion", "assemble", &one_armed());
    stage.client.until_phases(&[("running", 201)]);
    stage.outage(kind, |scene| {
        scene.until_motors("end of the motion", |motors| {
            motors
                .iter()
                .any(|motor| motor.kind == "stop" && motor.run == "motion/retract:base")
                .then_some(())
        });
    });

    stage
        .client
        .until_answered(calls.iter().chain([&"motion".to_owned()]));
    stage.client.invoke("ping", &json!({}));
    for call_id in &calls {
        let answer = stage.client.only_answer(call_id);
        assert!(
            answer["result"]["seconds"].is_f64(),
            "{answer}\n{}",
            stage.service.log()
        );
    }
    assert_eq!(
        stage.client.only_answer("motion")["result"]["success"],
        true,
        "on_bus_loss: continue"
    );
    assert!(from_first(&stage.scene.motors(), &["halt", "emergency"]).is_none());
}

#[test]
fn slow_calls_survive_the_embedded_bus() {
    slow_calls_survive(BusKind::Embedded);
}

#[test]
fn slow_calls_survive_the_python_bus() {
    if python().is_some() {
        slow_calls_survive(BusKind::Python);
    }
}

/// The answers are written into a connection whose other end never reads them, long before the loss is noticed.
fn answers_survive_a_bus_that_hangs_for_20_s_and_is_killed(kind: BusKind) {
    let hang = Duration::from_secs(20);
    let mut stage = Stage::on(kind, &json!({}));
    let mut random = fastrand::Rng::with_seed(SEED);
    let calls: Vec<String> = (0..200).map(|n| format!("slow-{n}")).collect();
    for call_id in &calls {
        let seconds = 5.0 + 10.0 * random.f64();
        stage.client.call(call_id, "slow", &json!({ "seconds": seconds }));
    }
    stage.client.until_phases(&[("running", 200)]);
    stage.bus.signal(Signal::STOP);
    // This is no wait for an event: it is the hang itself.
    std::thread::sleep(hang);
    stage.outage(kind, |_| {});

    let end = Instant::now() + DEADLINE;
    let mut marks = HashMap::new();
    while marks.len() < calls.len() {
        let frame = stage.client.next(end).expect("200 answers");
        if frame["type"] == "ovos.tools.invoke.response" {
            let call_id = frame["data"]["call_id"].as_str().unwrap().to_owned();
            marks.insert(call_id, frame["context"]["ovos_tools"].clone());
        }
    }
    stage.client.invoke("ping", &json!({}));
    for call_id in &calls {
        assert!(stage.client.only_answer(call_id)["result"]["seconds"].is_f64());
        assert_eq!(marks[call_id], json!({ "call_id": call_id, "resent": 1 }));
    }
    let status = stage.client.ask("ovos.tools.status", &json!({}));
    assert_eq!(status["bus"]["echoes"], true);
    let counters = &status["bus"]["counters"];
    // The answer to the last look at the phases may be among them.
    let resent = counters["answers_resent"].as_u64();
    assert!(matches!(resent, Some(200 | 201)), "{counters}");
    assert_eq!(counters["answers_given_up"], 0);
}

#[test]
fn answers_survive_an_embedded_bus_that_hangs_and_is_killed() {
    answers_survive_a_bus_that_hangs_for_20_s_and_is_killed(BusKind::Embedded);
}

#[test]
fn answers_survive_a_python_bus_that_hangs_and_is_killed() {
    if python().is_some() {
        answers_survive_a_bus_that_hangs_for_20_s_and_is_killed(BusKind::Python);
    }
}

/// Several calls of `assemble`, of which one moves and the others wait for it.
fn motion_is_halted(kind: BusKind) {
    let limit_ms = 300;
    let mut stage = Stage::on(kind, &json!({ "on_bus_loss_ms": limit_ms }));

    let calls: Vec<String> = (0..5).map(|n| format!("motion-{n}")).collect();
    for call_id in &calls {
        stage.client.call(
            call_id,
            "assemble",
            &json!({ "step_ms": 20, "steps": 5000, "timeout_ms": 100_000 }),
        );
        if call_id == "motion-0" {
            stage.client.until_call(call_id, "running");
        }
    }
    // A read call is not ended.
    stage.client.call("slow", "slow", &json!({ "seconds": 2.0 }));
    stage.client.until_phases(&[("running", 2), ("queued", 4)]);
    stage.scene.until_moving("motion-0");

    let killed_at = monotonic_ns();
    stage.outage(kind, |scene| {
        scene.until_motors("halt", |motors| from_first(motors, &["halt"]).map(|_| ()));
    });

    stage
        .client
        .until_answered(calls.iter().chain([&"slow".to_owned()]));
    stage.client.invoke("ping", &json!({}));
    for call_id in &calls {
        let answer = stage.client.only_answer(call_id);
        let output = answer.to_string();
        assert!(
            answer["result"]["success"] == false || output.contains("the bus was disconnected"),
            "{output}"
        );
    }
    assert_eq!(stage.client.only_answer("slow")["result"]["seconds"], 2.0);

    let motors = stage.scene.motors();
    let halted = from_first(&motors, &["halt"]).unwrap();
    let after_ms = (halted[0].at - killed_at) / 1_000_000;
    // With slack for a busy machine. That it does not halt at once is checked, too.
    assert!(
        (limit_ms..limit_ms + 2000).contains(&after_ms),
        "halted {after_ms} ms after the bus was lost"
    );
    assert_halted(&motors);
    let moved: Vec<&str> = motors
        .iter()
        .map(|motor| motor.run.as_str())
        .filter(|run| *run != "-")
        .collect();
    assert!(
        moved.iter().all(|run| run.starts_with("motion-0/")),
        "a queued call moved: {moved:?}"
    );
    // Nothing is latched: it moves again.
    let again = stage
        .client
        .invoke("assemble", &json!({ "step_ms": 1, "steps": 1 }));
    assert_eq!(again["result"]["success"], true, "{again}");
}

#[test]
fn motion_is_halted_on_the_embedded_bus() {
    motion_is_halted(BusKind::Embedded);
}

#[test]
fn motion_is_halted_on_the_python_bus() {
    if python().is_some() {
        motion_is_halted(BusKind::Python);
    }
}

/// A connection that stays open and silent, as after a pulled cable.
#[test]
fn a_bus_that_hangs_is_away() {
    for kind in [BusKind::Embedded, BusKind::Python] {
        if kind == BusKind::Python && python().is_none() {
            continue;
        }
        let limit_ms = 1000;
        let mut stage = Stage::on(kind, &json!({ "on_bus_loss_ms": limit_ms }));
        stage.client.call(
            "motion",
            "assemble",
            &json!({ "step_ms": 20, "steps": 5000, "timeout_ms": 100_000 }),
        );
        stage.scene.until_moving("motion");
        let frozen_at = monotonic_ns();
        stage.bus.signal(Signal::STOP);
        stage
            .scene
            .until_motors("halt", |motors| from_first(motors, &["halt"]).map(|_| ()));
        stage.bus.signal(Signal::CONT);
        stage.client.until_answered([&"motion".to_owned()]);
        let motors = stage.scene.motors();
        let after_ms = (from_first(&motors, &["halt"]).unwrap()[0].at - frozen_at) / 1_000_000;
        // A third of the limit passes between two signs of life.
        assert!(
            (limit_ms * 2 / 3..limit_ms + 2500).contains(&after_ms),
            "{kind:?}: halted {after_ms} ms after the bus hung"
        );
        assert_halted(&motors);
    }
}

/// A bus that returns in time does not count as lost.
#[test]
fn a_short_outage_halts_nothing() {
    let mut stage = Stage::on(BusKind::Embedded, &json!({ "on_bus_loss_ms": 60_000 }));
    stage.client.call("motion", "assemble", &one_armed());
    stage.scene.until_moving("motion");
    stage.outage(BusKind::Embedded, |_| {});
    stage.client.until_answered([&"motion".to_owned()]);
    stage.client.invoke("ping", &json!({}));
    assert_eq!(stage.client.only_answer("motion")["result"]["success"], true);
    assert!(from_first(&stage.scene.motors(), &["halt"]).is_none());
}
