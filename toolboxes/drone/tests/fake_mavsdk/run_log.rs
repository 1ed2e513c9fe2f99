//! The run log of a flight that did not go as planned.
use std::path::Path;
use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::Harness;
use ovos_toolbox_sdk::wire::CallOutcome;
use px4_sim::log::Cause;
use px4_sim::{Mode, World};

use crate::paused::fly;

/// The lines of the only file in a folder.
fn lines(folder: &Path) -> Vec<Value> {
    let file = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Number of lines of a kind with these fields, given as JSON pointers.
fn count(lines: &[Value], kind: &str, fields: &[(&str, Value)]) -> usize {
    let matches = |line: &&Value| {
        line["kind"] == kind && fields.iter().all(|(at, value)| line.pointer(at) == Some(value))
    };
    lines.iter().filter(matches).count()
}

#[test]
fn a_call_that_was_dropped_and_what_the_vehicle_did_meanwhile_are_written() {
    let folder = tempfile::tempdir().unwrap();
    fly(
        json!({"run_log": folder.path()}),
        World::default(),
        |paused| async move {
            paused.fleet.halt(true).await.unwrap();
            paused.take_off(5.0).await;
            let far = json!({"north_m": -30, "east_m": 0, "down_m": -6});
            let dropped = paused.fleet.call("goto_local", far);
            assert!(
                tokio::time::timeout(Duration::from_secs(4), dropped)
                    .await
                    .is_err()
            );
            paused.fleet.halt(false).await.unwrap();
            paused.pass(6.0).await;
            let refused = paused
                .fleet
                .call("goto_local", json!({"north_m": 0, "east_m": 99, "down_m": -6}))
                .await;
            assert_eq!(refused["code"], "fence", "{refused}");
            paused.fake.lock().vehicle.set_mode(Mode::Posctl, Cause::Pilot);
            paused.pass(3.0).await;
            paused.fleet.close().await;
        },
    );
    let lines = lines(folder.path());
    for (kind, fields) in [
        ("brake", vec![("/nothing_sent", json!("it does not move"))]),
        (
            "ack",
            vec![("/command", json!("takeoff")), ("/ack", json!("done"))],
        ),
        ("mode", vec![("/mode", json!("OFFBOARD"))]),
        (
            "mode",
            vec![("/before", json!("OFFBOARD")), ("/mode", json!("HOLD"))],
        ),
        ("mode", vec![("/mode", json!("POSCTL"))]),
        ("text", vec![("/text", json!("Takeoff detected"))]),
        ("dropped", vec![("/tool", json!("goto_local"))]),
        ("brake", vec![("/emergency", json!(false))]),
        (
            "verdict",
            vec![("/check", json!("way")), ("/verdict/refused", json!("fence"))],
        ),
        ("scene", vec![("/scene/frame", json!("front"))]),
        ("pilot_override", vec![]),
    ] {
        assert!(count(&lines, kind, &fields) > 0, "{kind} {fields:?}: {lines:#?}");
    }
    assert_eq!(count(&lines, "dropped", &[]), 1);
    // Setpoints are logged once, without their acknowledgements.
    assert_eq!(
        count(&lines, "ack", &[("/command", json!("position setpoint"))]),
        0
    );
}

#[test]
fn what_the_service_answers_for_a_call_that_it_ended_is_written() {
    let folder = tempfile::tempdir().unwrap();
    // A conclusion needs no vehicle.
    let config = json!({"mavsdk_server": "/nowhere/mavsdk_server", "px4_sim": "/nowhere/px4-sim", "run_log": folder.path()});
    let harness = Harness::open::<drone::Drone>(config).expect("opens all the same");
    let report = |outcome| Report {
        outcome,
        duration_ms: 700,
        actions: Vec::new(),
    };
    let far = json!({"north_m": 40, "east_m": 0, "down_m": -6});
    for (tool, args, outcome) in [
        ("goto_local", far, CallOutcome::Cancelled),
        ("move_up", json!({"cm": 50}), CallOutcome::TimedOut),
        ("emergency_brake", json!({}), CallOutcome::Completed),
    ] {
        let concluded = harness.conclude(tool, args, &report(outcome)).unwrap();
        assert!(concluded.is_some(), "{tool}");
    }
    harness.halt(&["all"], true).unwrap();
    harness.resume().unwrap();
    assert!(harness.close().is_clean());
    let lines = lines(folder.path());
    for (kind, fields) in [
        (
            "answer",
            vec![
                ("/tool", json!("goto_local")),
                ("/answer/code", json!("cancelled")),
            ],
        ),
        (
            "answer",
            vec![("/tool", json!("move_up")), ("/answer/code", json!("timeout"))],
        ),
        (
            "answer",
            vec![("/tool", json!("emergency_brake")), ("/answer/ok", json!(true))],
        ),
        ("halt", vec![("/emergency", json!(true))]),
        ("resume", vec![("/refused", Value::Null)]),
    ] {
        assert_eq!(count(&lines, kind, &fields), 1, "{kind} {fields:?}: {lines:#?}");
    }
}

#[test]
fn what_a_brake_sends_is_written_and_every_command_names_who_asked_for_it() {
    for (estop, command, mode) in [("hold", "Hold", "HOLD"), ("land", "Land", "LAND")] {
        let folder = tempfile::tempdir().unwrap();
        let config = json!({"run_log": folder.path(), "estop": estop});
        fly(config, World::default(), |paused| async move {
            paused.take_off(5.0).await;
            let far = json!({"north_m": -30, "east_m": 0, "down_m": -6});
            let dropped = paused.fleet.call("goto_local", far);
            let early = tokio::time::timeout(Duration::from_secs(4), dropped).await;
            assert!(early.is_err(), "{early:?}");
            paused.fleet.halt(true).await.unwrap();
            paused.pass(5.0).await;
            paused.fleet.close().await;
        });
        let lines = lines(folder.path());
        for (kind, fields) in [
            (
                "brake",
                vec![
                    ("/brake", json!(1)),
                    ("/asked_by", json!("halt")),
                    ("/emergency", json!(true)),
                ],
            ),
            (
                "command",
                vec![("/brake", json!(1)), ("/command", json!(command))],
            ),
            (
                "ack",
                vec![
                    ("/brake", json!(1)),
                    ("/command", json!(estop)),
                    ("/ack", json!("done")),
                ],
            ),
            (
                "mode",
                vec![("/before", json!("OFFBOARD")), ("/mode", json!(mode))],
            ),
        ] {
            assert_eq!(count(&lines, kind, &fields), 1, "{kind} {fields:?}: {lines:#?}");
        }
        let nameless =
            |line: &&Value| line["kind"] == "command" && line["call_id"].is_null() && line["brake"].is_null();
        assert_eq!(lines.iter().find(nameless), None);
    }
}
