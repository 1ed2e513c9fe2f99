//! The simulator.

use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::{Value, json};

use crate::truth::{NO_MACHINE, effects, needed, none_succeeds};

fn open(fault: &Value) -> (Harness, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "robots": {"five": {"sim": {"time_scale": 1000, "faults": [fault]}}},
        "data_dir": folder.path(), "recognition_timeout_ms": 100,
    });
    (Harness::open::<Robots>(config).unwrap(), folder)
}

#[test]
fn nothing_succeeds_on_a_robot_that_is_away() {
    let (harness, _folder) = open(&json!("offline"));
    // What it does without is a word of the toolbox.
    let concerned = |tool: &str, _: &Value| !NO_MACHINE.contains(&tool) && tool != "enable_degraded_mode";
    let asked = none_succeeds("offline", &harness, concerned, || ());
    assert!(asked > 40, "{asked}");
}

#[test]
fn nothing_succeeds_with_a_part_that_does_not_move() {
    // Neither reads nor changes a setting, and moves nothing.
    let still = ["calibrate_hitch", "calibrate_arm", "enable_torque", "setup_robot"];
    // A hitch that is stuck and one that holds a cart press alike.
    for part in ["left_arm", "right_arm", "gantry", "base", "lift"] {
        let (harness, _folder) = open(&json!({"stuck": part}));
        let effects = effects(&harness);
        let concerned = |tool: &str, args: &Value| {
            // It is at home, and whether it moves does not show.
            let stays = args["pose"] == "home"
                || args["position"] == "home"
                || tool == "calibrate_gantry"
                || tool == "calibrate_lift";
            !still.contains(&tool)
                && !stays
                && needed((&harness, &effects), tool, args, true)
                    .iter()
                    .any(|needed| needed == part)
        };
        let asked = none_succeeds(&format!("stuck {part}"), &harness, concerned, || ());
        assert!(asked > 0, "{part}: {asked}");
        println!("{part}: {asked} tools");
    }
}

#[test]
fn nothing_succeeds_that_needs_a_servo_that_does_not_answer() {
    for (servo, part) in [
        ("left:1", "left_arm"),
        ("left:6", "left_arm"),
        ("left:8", "base"),
        ("left:10", "lift"),
        ("left:11", "hitch"),
        ("right:4", "right_arm"),
        ("right:7", "gantry"),
    ] {
        let (harness, _folder) = open(&json!({"missing": servo}));
        let effects = effects(&harness);
        // What finds out who answers has found that out, a report of settings asks no servo, and the others ask one that
        // answers.
        let found = [
            "scan_motors",
            "set_home_position",
            "save_config",
            "load_config",
            "enable_degraded_mode",
            "setup_robot",
        ];
        let one = [
            "test_motor",
            "recover_servo",
            "set_motor_id",
            "enable_torque",
            "check_torque",
        ];
        let concerned = |tool: &str, args: &Value| {
            !found.contains(&tool)
                && !one.contains(&tool)
                && !NO_MACHINE.contains(&tool)
                // A hand is one servo.
                && (tool != "gripper" || servo.ends_with(":6"))
                && needed((&harness, &effects), tool, args, false)
                    .iter()
                    .any(|needed| needed == part)
        };
        let asked = none_succeeds(&format!("missing {servo}"), &harness, concerned, || ());
        assert!(asked > 0, "{servo}");
        let (bus, id) = servo.split_once(':').unwrap();
        let id: u8 = id.parse().unwrap();
        for (tool, args) in [
            (
                "recover_servo",
                json!({"bus": bus, "motor_id": id, "action": "ping"}),
            ),
            ("test_motor", json!({"bus": bus, "motor_id": id})),
            (
                "set_motor_id",
                json!({"bus": bus, "current_id": id, "new_id": 30}),
            ),
            ("motor_status", json!({"subsystem": part, "motor_id": id})),
            ("motor_status", json!({"subsystem": "all"})),
            ("check_servos", json!({})),
            ("servo_health_report", json!({})),
            ("self_test", json!({"subsystems": [part]})),
        ] {
            let succeeded = harness
                .invoke(tool, args.clone())
                .is_ok_and(|output| output["success"] != false);
            assert!(!succeeded, "missing {servo}: {tool} {args}");
        }
    }
}
