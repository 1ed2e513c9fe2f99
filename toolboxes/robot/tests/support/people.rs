//! People whom a recognition handler on the bus sees: any robot turns to them and points at them with the nearer arm.

use std::time::{Duration, Instant};

use ovos_toolbox_sdk::testing::Harness;
use serde_json::{Value, json};

/// What has reached a machine since the last look.
pub(crate) struct Moved {
    /// The ways the base turned: positive is left, zero is left out.
    pub(crate) turns: Vec<f64>,
    /// The arms that moved.
    pub(crate) arms: Vec<&'static str>,
}

/// Has `robot` turn to and point at one person on each side whom only the handler sees.
pub(crate) fn check(robot: &str, harness: &Harness, mut moved: impl FnMut() -> Moved) {
    harness.respond("ovos.robot.recognise", |question| {
        let angle = match question["args"]["name"].as_str() {
            Some("Mae") if question["tool"] == "locate" => -40.0,
            Some("Noor") if question["tool"] == "locate" => 40.0,
            _ => return Some(Ok(json!({"success": false, "message": "not seen"}))),
        };
        Some(Ok(json!({"angle": angle, "tilt": 5.0, "distance": 2.0})))
    });
    for (name, side, arm) in [("Mae", 1.0, "left_arm"), ("Noor", -1.0, "right_arm")] {
        let _ = moved();
        let turned = act(harness, "turn", json!({"target": name}), "base_rotate");
        assert!(turned.is_ok(), "{robot} turns to {name}: {turned:?}");
        let turns = moved().turns;
        assert!(
            !turns.is_empty() && turns.iter().all(|turn| turn.signum() == side),
            "{robot} turns to {name}: {turns:?}"
        );
        let pointed = act(harness, "point_at_person", json!({"name": name}), "point");
        let done = pointed.unwrap_or_else(|why| panic!("{robot} points at {name}: {why}"));
        assert_eq!(done["data"]["arm"], arm, "{robot} points at {name}: {done:#}");
        assert_eq!(moved().arms, [arm], "{robot} points at {name}");
    }
    for (tool, args, action) in [
        ("turn", json!({"target": "Zoe"}), "base_rotate"),
        ("point_at_person", json!({"name": "Zoe"}), "point"),
    ] {
        let unseen = act(harness, tool, args, action).unwrap_err();
        assert!(
            unseen.contains("does not know where Zoe is"),
            "{robot}, {tool}: {unseen}"
        );
        let Moved { turns, arms } = moved();
        assert!(
            turns.is_empty() && arms.is_empty(),
            "{robot}, {tool}: {turns:?} {arms:?}"
        );
    }
}

/// Does one action of a tool's plan, with the bus answering.
fn act(harness: &Harness, tool: &str, args: Value, action: &str) -> Result<Value, String> {
    let plan = harness.plan(tool, args).unwrap().unwrap();
    let action = plan.into_iter().find(|one| one.name == action).unwrap();
    let run = harness.start_action(tool, action, json!({})).unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        harness.deliver();
        if let Some(ended) = run.wait_for(Duration::from_millis(5)) {
            return ended.result().map_err(|failure| failure.message);
        }
        assert!(Instant::now() < end, "{tool} does not end");
    }
}
