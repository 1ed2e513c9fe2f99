//! The same base over rosbridge, as the published roslib takes it for one.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{Scene, driven, now};
use crate::peers::{Peer, python};

/// A peer of the published ws, and the port of its rosbridge.
pub(super) fn node(script: &str, arguments: &[&str]) -> Option<(Peer, u64)> {
    python()?;
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ros-graph/tests/node");
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv-node");
    let (node, modules) = (venv.join("bin/node"), venv.join("node_modules"));
    if !modules.join("ws").exists() {
        skip::skip(
            ".venv-node",
            "it is not there, or without ws: run scripts/venv.sh",
        );
        return None;
    }
    let mut command = Command::new(node);
    command.arg(tests.join(script)).arg(modules).args(arguments);
    let peer = Peer::run(script, command);
    let ready: Value = serde_json::from_str(&peer.until("ready")).unwrap();
    Some((peer, ready["port"].as_u64().unwrap()))
}

/// A base that hears velocities in this way, and the port of its rosbridge: any for 0.
pub(crate) fn base(port: u64, kind: &str) -> Option<(Peer, u64)> {
    node("rosbridge_base.mjs", &[&port.to_string(), "drives", kind])
}

/// How it is reached.
pub(crate) fn channels(port: u64, discovery_ms: u64) -> Value {
    json!({
        "rosbridge": format!("ws://127.0.0.1:{port}"), "ros": {"discovery_ms": discovery_ms},
        "navigate": {"action": "/navigate_to_pose"},
    })
}

pub(super) fn scene(kind: &str) -> Option<Scene> {
    let (base, port) = base(0, kind)?;
    Some(driven(base, "nav2-base", channels(port, 8000)))
}

#[test]
fn a_base_over_rosbridge_goes_as_far_as_its_odometry_says() {
    let Some(scene) = scene("twist") else { return };
    let forward = json!({"direction": "forward", "distance": 0.3});
    let done = scene.harness.invoke("move_base", forward).unwrap();
    assert_eq!(done["success"], true, "{done:#}");
    let measured = done["data"]["distance_m"].as_f64().unwrap();
    assert!((measured - 0.3).abs() < 0.05, "{done:#}");
    let there = scene
        .harness
        .invoke("navigate_to", json!({"x": 3.0, "y": 0.0}))
        .unwrap();
    assert_eq!(there["success"], true, "{there:#}");
}

#[test]
fn a_stop_over_rosbridge_reaches_the_base_and_its_goal() {
    let Some(scene) = scene("twist") else { return };
    let walk = json!({"direction": "forward", "speed": 0.2, "duration": 30.0});
    let run = scene.start("walk", walk.clone());
    scene.moves();
    let since = now();
    scene.harness.cancel(run.id());
    scene.harness.halt(&["base"], false).unwrap();
    let late = scene.rests_after(since);
    println!("rosbridge: the first zero {late:.1} ms after the halt");
    assert!(late < 200.0, "{late} ms");
    let _ = run.wait();

    let goal = scene.start("navigate_to", json!({"x": 500.0, "y": 0.0}));
    scene.base.until("\"goal\"");
    scene.harness.safe_stop(scene.config.clone()).unwrap();
    scene.base.until("\"canceled\"");
    let _ = goal.wait();

    // The connection breaks: nothing goes on as if it were heard.
    let lost = scene.start("walk", walk);
    scene.base.wait("a velocity again", |_| {
        scene
            .velocities()
            .last()
            .filter(|(_, speed)| *speed > 0.0)
            .map(drop)
    });
    scene.base.say("away 3000");
    let ended = lost.wait().result();
    assert!(!ended.is_ok_and(|done| done["success"] == true));
}

/// The base is reached, whatever becomes of what tells who listens; and where nothing listens any more a movement is no success.
#[test]
fn a_base_is_stopped_whatever_rosapi_says() {
    for (word, key) in [
        ("fails", Some("failed")),
        ("mute", Some("unanswered")),
        ("leave", None),
    ] {
        let Some(scene) = scene("twist") else { return };
        let walk = json!({"direction": "forward", "speed": 0.2, "duration": 30.0});
        let run = scene.start("walk", walk);
        scene.moves();
        let mut since = now();
        scene.base.say(word);
        if let Some(key) = key {
            // The second question comes when the first one has been answered, or not.
            let asked = format!("\"{key}\":\"/rosapi/subscribers\"");
            scene.base.wait("two looks for listeners", |lines| {
                (lines.iter().filter(|line| line.contains(&asked)).count() >= 2).then_some(())
            });
            scene.moves();
            since = now();
            scene.harness.cancel(run.id());
            scene.harness.halt(&["base"], false).unwrap();
        }
        let ended = run.wait().result();
        assert!(!ended.is_ok_and(|done| done["success"] == true), "{word}");
        let late = scene.rests_after(since);
        println!("rosapi {word}: the first zero after {late:.1} ms");
    }
}
