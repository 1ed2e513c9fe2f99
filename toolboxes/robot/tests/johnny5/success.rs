//! Johnny Five's servos on a serial line.

use feetech_sim::{Fault, Line};
use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::{Value, json};
use std::time::Duration;

use crate::catalogue::each;
use crate::servos::Body;
use crate::truth::{NO_MACHINE, effects, needed, none_succeeds};

fn open(body: &Body, answer_ms: u64) -> (Harness, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut section = body.section();
    section["answer_ms"] = json!(answer_ms);
    let config = json!({
        "robots": {"five": {"adapter": "johnny5", "johnny5": section}},
        "data_dir": folder.path(), "recognition_timeout_ms": 100,
    });
    let harness = Harness::open::<Robots>(config)
        .unwrap()
        .with_deadline(Duration::from_secs(90));
    (harness, folder)
}

fn lines(body: &Body) -> [(&Line, u8); 2] {
    [(&body.left, 11), (&body.right, 8)]
}

fn all(body: &Body, fault: Fault) {
    for (line, last) in lines(body) {
        (1..=last).for_each(|id| line.break_servo(id, fault));
    }
}

#[test]
fn nothing_succeeds_where_no_servo_answers() {
    let faults = [Fault::Absent, Fault::Mute, Fault::BadChecksum, Fault::Noise];
    each(&faults, |&fault| {
        let body = Body::new();
        let (harness, _folder) = open(&body, 8);
        all(&body, fault);
        // A word of the toolbox, and what is in its files.
        let words = ["enable_degraded_mode"];
        let concerned = |tool: &str, _: &Value| !NO_MACHINE.contains(&tool) && !words.contains(&tool);
        let asked = none_succeeds(&format!("{fault:?}"), &harness, concerned, || ());
        assert!(asked > 35, "{fault:?}: {asked}");
    });
}

#[test]
fn nothing_that_moves_succeeds_where_every_servo_reports_an_error() {
    each(&[Fault::Error(4), Fault::Error(32)], |&fault| {
        let body = Body::new();
        let (harness, _folder) = open(&body, 500);
        all(&body, fault);
        let tools = [
            "wave",
            "move_arm",
            "look_at",
            "nod",
            "go_to_pose",
            "express",
            "gripper",
            "dance",
            "lift",
            "hitch",
            "test_motor",
            "self_test",
            "move_base",
            "walk",
            "spin",
            "turn",
            "calibrate_gantry",
            "calibrate_lift",
        ];
        let asked = none_succeeds(
            &format!("{fault:?}"),
            &harness,
            |tool, _| tools.contains(&tool),
            || (),
        );
        assert!(asked >= tools.len() - 2, "{fault:?}: {asked}");
    });
}

#[test]
fn nothing_succeeds_with_servos_that_do_not_move() {
    let body = Body::new();
    let (harness, _folder) = open(&body, 500);
    for (line, last) in lines(&body) {
        for id in 1..=last {
            line.servo(id, |servo| {
                let at = servo.position();
                servo.block(at, at);
            })
            .unwrap();
        }
    }
    let effects = effects(&harness);
    // A thing in the hand, or a cart at the hitch, stops them alike.
    let holds = |args: &Value| args["action"] == "close";
    let tools = [
        "wave",
        "move_arm",
        "look_at",
        "nod",
        "go_to_pose",
        "express",
        "pick_object",
        "gripper",
        "dance",
        "lift",
        "hitch",
        "test_motor",
        "self_test",
        "calibrate_gantry",
        "calibrate_lift",
    ];
    let concerned = |tool: &str, args: &Value| {
        tools.contains(&tool) && !holds(args) && !needed((&harness, &effects), tool, args, true).is_empty()
    };
    let asked = none_succeeds("blocked", &harness, concerned, || ());
    assert!(asked >= 10, "{asked}");
    for (tool, args) in [
        ("hitch", json!({"action": "open"})),
        ("gripper", json!({"arm": "left", "action": "open"})),
        ("calibrate_arm", json!({"arm": "right", "mode": "full"})),
        ("calibrate_hitch", json!({"mode": "full"})),
        ("calibrate_gantry", json!({"mode": "full"})),
        ("self_test", json!({"subsystems": ["gantry"]})),
        ("self_test", json!({"subsystems": ["lift", "hitch"]})),
    ] {
        let done = harness.invoke(tool, args.clone());
        let succeeded = done.as_ref().is_ok_and(|output| output["success"] != false);
        assert!(!succeeded, "blocked: {tool} {args}: {done:?}");
    }
}
