//! People whom a recognition handler on the bus sees: a robot that sees nobody itself turns to them and points at them.

use std::time::Duration;

use feetech_sim::register as r;
use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::{Value, json};

use crate::servos::Body;
use crate::words;

/// Johnny Five, and a handler that sees Ada at this many degrees (negative is left) and nobody else.
fn open(body: &Body, angle: f64) -> Harness {
    let config = json!({"robots": {"five": {"adapter": "johnny5", "johnny5": body.section()}}});
    let harness = Harness::open::<Robots>(config).unwrap();
    harness.respond("ovos.robot.recognise", move |question| {
        let sees = question["tool"] == "locate" && question["args"]["name"] == "Ada";
        Some(Ok(match sees {
            true => json!({"angle": angle, "tilt": 5.0, "distance": 2.0}),
            false => json!({"success": false, "message": "not seen"}),
        }))
    });
    harness
}

/// Does one action of a tool's plan, with the bus answering.
fn act(harness: &Harness, tool: &str, args: Value, action: &str) -> Result<Value, String> {
    let plan = harness.plan(tool, args).unwrap().unwrap();
    let action = plan.into_iter().find(|one| one.name == action).unwrap();
    let run = harness.start_action(tool, action, json!({})).unwrap();
    loop {
        harness.deliver();
        if let Some(ended) = run.wait_for(Duration::from_millis(5)) {
            return ended.result().map_err(|failure| failure.message);
        }
    }
}

#[test]
fn the_base_turns_to_whom_a_handler_sees() {
    for (angle, sign) in [(-10.0, 1), (10.0, -1)] {
        let body = Body::new();
        let harness = open(&body, angle);
        act(&harness, "turn", json!({"target": "Ada"}), "base_rotate").unwrap();
        for wheel in 7..=9 {
            let speeds = words(&body.left.frames(), wheel, r::GOAL_SPEED);
            let mut driven = speeds.into_iter().filter(|speed| *speed != 0).peekable();
            assert!(
                driven.peek().is_some() && driven.all(|speed| speed.signum() == sign),
                "wheel {wheel}"
            );
        }
        let unseen = act(&harness, "turn", json!({"target": "Grace"}), "base_rotate");
        assert_eq!(unseen, Err("five does not know where Grace is".to_owned()));
    }
}

#[test]
fn the_arm_on_the_side_of_whom_a_handler_sees_points() {
    for (angle, arm) in [(-40.0, "left_arm"), (40.0, "right_arm")] {
        let body = Body::new();
        let harness = open(&body, angle);
        let done = act(&harness, "point_at_person", json!({"name": "Ada"}), "point").unwrap();
        assert_eq!(done["data"]["arm"], arm, "{done:#}");
        for (line, name) in [(&body.left, "left_arm"), (&body.right, "right_arm")] {
            let goals = words(&line.frames(), 1, r::GOAL_POSITION);
            // Power, out and home again.
            assert_eq!(!goals.is_empty(), name == arm, "{name}: {goals:?}");
        }
        assert!(!body.moves());
    }
}
