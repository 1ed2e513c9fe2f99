//! `ovos.stop` and `mycroft.stop`: the user said "stop". The calls of that session end and their motion is halted;
//! nothing is latched.

use crate::support::client::Client;
use crate::support::process::Process;
use crate::support::scene::{Scene, assert_still, from_first};
use crate::support::service::BusKind;
use serde_json::{Value, json};

struct Stage {
    scene: Scene,
    _bus: Process,
    _service: Process,
    mine: Client,
    other: Client,
}

/// Two sessions move different arms; a third call, without a session, waits.
fn stage() -> Stage {
    let scene = Scene::new(&json!({}));
    let bus = scene.bus(BusKind::Embedded);
    let mut mine = Client::connect(scene.port).in_session("mine");
    let mut other = Client::connect(scene.port).in_session("other");
    let service = scene.service(&mut mine);
    mine.call("mine", "assemble", &moves("left_arm"));
    other.call("other", "assemble", &moves("right_arm"));
    other.until_phases(&[("running", 2)]);
    scene.until_moving("mine");
    scene.until_moving("other");
    Stage {
        scene,
        _bus: bus,
        _service: service,
        mine,
        other,
    }
}

fn moves(subsystem: &str) -> Value {
    json!({ "subsystems": [subsystem], "step_ms": 2, "steps": 100_000, "timeout_ms": 300_000 })
}

/// Sends a user stop, and checks that these calls end and no others.
#[track_caller]
fn check(stop: &str, session: Option<&str>, ended: &[&str]) {
    let mut stage = stage();
    let context = session.map_or(json!({}), |id| json!({ "session": { "session_id": id } }));
    let output = json!({ "type": stop, "data": {}, "context": context });
    stage.mine.send_text(&output.to_string());
    for (call_id, subsystem) in [("mine", "left_arm"), ("other", "right_arm")] {
        let client = if call_id == "mine" {
            &mut stage.mine
        } else {
            &mut stage.other
        };
        if !ended.contains(&call_id) {
            continue;
        }
        client.until_answered([&call_id.to_owned()]);
        client.invoke("ping", &json!({}));
        assert_eq!(client.only_answer(call_id)["result"]["success"], false);
        let motors = stage.scene.motors();
        let of_arm: Vec<_> = motors
            .iter()
            .filter(|motor| motor.subsystem == subsystem)
            .cloned()
            .collect();
        assert_still(from_first(&of_arm, &["halt"]).expect("it is halted"));
    }
    let mut left: Vec<String> = stage.mine.calls().into_keys().collect();
    // They came over two connections, so their order is not known.
    left.sort();
    let expected: Vec<&str> = ["mine", "other"]
        .into_iter()
        .filter(|call| !ended.contains(call))
        .collect();
    assert_eq!(left, expected, "still under way after {stop} of {session:?}");
    for call in &expected {
        // The other call still moves.
        let before = stage.scene.motors().len();
        let run = format!("{call}/");
        stage.scene.until_motors("another step", |motors| {
            motors[before..]
                .iter()
                .any(|motor| motor.run.starts_with(&run))
                .then_some(())
        });
    }
    assert!(
        from_first(&stage.scene.motors(), &["emergency"]).is_none(),
        "this is no emergency"
    );
    // Not latched: the same arm moves again at once.
    if let Some(call) = ended.first() {
        let arm = if *call == "mine" { "left_arm" } else { "right_arm" };
        let again = stage.mine.invoke(
            "assemble",
            &json!({ "subsystems": [arm], "step_ms": 1, "steps": 1 }),
        );
        assert_eq!(again["result"]["success"], true, "{again}");
    }
}

#[test]
fn it_ends_the_calls_of_its_session() {
    check("ovos.stop", Some("mine"), &["mine"]);
    check("mycroft.stop", Some("other"), &["other"]);
    check("ovos.stop", Some("third"), &[]);
}

#[test]
fn without_a_session_or_with_the_default_one_it_ends_all() {
    check("ovos.stop", None, &["mine", "other"]);
    check("mycroft.stop", Some("default"), &["mine", "other"]);
}

/// A call that brings the machine to safety continues.
#[test]
fn it_does_not_end_a_safe_call() {
    let mut stage = stage();
    stage.mine.call("brake", "brake", &json!({ "ms": 700 }));
    stage.mine.until_call("brake", "running");
    let output = json!({ "type": "ovos.stop", "data": {}, "context": {} });
    stage.mine.send_text(&output.to_string());
    stage.mine.until_answered([&"brake".to_owned()]);
    assert_eq!(stage.mine.only_answer("brake")["result"]["held_ms"], 700);
}
