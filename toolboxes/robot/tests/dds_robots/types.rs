//! A velocity reaches a reader of its type, or the call fails.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{Scene, each, scene_with, velocities};

const TOPIC: &str = "rt/cmd_vel";

fn walk(scene: &Scene) -> Value {
    scene.call(
        "walk",
        json!({"direction": "forward", "speed": 0.2, "duration": 0.3}),
    )
}

/// The types of the writers under the name of velocities, as the robot's own participant sees them.
fn writers(scene: &Scene) -> BTreeSet<String> {
    scene.robot.say("graph 24");
    scene.robot.until("\"graph\"");
    let of_topic = |frame: &Value| frame["name"] == TOPIC && frame["role"] == "writer";
    let text = |frame: Value| frame["type"].as_str().unwrap().to_owned();
    scene.frames().into_iter().filter(of_topic).map(text).collect()
}

#[test]
fn a_velocity_has_the_type_that_the_robot_reads() {
    let rows = [
        ("k1_topics", json!({}), "Twist", false),
        ("k1_topics_stamped", json!({}), "TwistStamped", true),
        (
            "k1_topics_both",
            json!({"velocity_type": "twist_stamped"}),
            "TwistStamped",
            true,
        ),
        (
            "k1_topics_both",
            json!({"velocity_type": "twist"}),
            "Twist",
            false,
        ),
    ];
    each(&rows, |(kind, more, ours, stamped)| {
        let Some(scene) = scene_with(kind, "hold", "humble", more) else {
            return;
        };
        let walked = walk(&scene);
        assert_eq!(walked["success"], true, "{kind}: {walked}");
        let frames = scene.new_frames();
        let received = velocities(&frames);
        assert!(
            received.iter().any(|velocity| velocity[0] > 0.0),
            "{kind}: {received:?}"
        );
        let stamps: Vec<&Value> = frames.iter().filter(|frame| frame["topic"] == "stamp").collect();
        assert_eq!(stamps.is_empty(), !stamped, "{kind}");
        for stamp in stamps {
            assert!(stamp["sec"].as_i64().unwrap() > 1_600_000_000, "{kind}: {stamp}");
            assert_eq!(stamp["frame"], "base_link", "{kind}");
        }
        // Both ends of a motion, and the stop of a process that is not there any more.
        scene.harness.halt(&["all"], true).unwrap();
        scene.await_frame("a stop", |frame| frame["velocity"] == json!([0.0, 0.0, 0.0]));
        scene.settle();
        let _ = scene.new_frames();
        scene.harness.safe_stop(scene.config.clone()).unwrap();
        scene.await_frame("a safe stop", |frame| frame["velocity"] == json!([0.0, 0.0, 0.0]));
        let expected = BTreeSet::from([format!("geometry_msgs::msg::dds_::{ours}_")]);
        assert_eq!(writers(&scene), expected, "{kind}: {more}");
    });
}

#[test]
fn a_velocity_that_no_reader_understands_fails_and_adds_no_type() {
    let rows = [
        ("k1_topics_text", json!({}), "std_msgs/String"),
        ("k1_topics_both", json!({}), "velocity_type"),
        (
            "k1_topics_stamped",
            json!({"velocity_type": "twist"}),
            "geometry_msgs/TwistStamped",
        ),
    ];
    each(&rows, |(kind, more, said)| {
        let Some(scene) = scene_with(kind, "hold", "humble", more) else {
            return;
        };
        let refused = walk(&scene);
        assert_eq!(refused["success"], false, "{kind}: {refused}");
        let why = refused["message"].as_str().unwrap();
        assert!(why.contains("/cmd_vel") && why.contains(said), "{kind}: {why}");
        let stopped = scene.harness.halt(&["all"], true).unwrap_err().to_string();
        assert!(stopped.contains(said), "{kind}: {stopped}");
        assert!(scene.harness.safe_stop(scene.config.clone()).is_err() || *kind == "k1_topics_both");
        assert!(
            velocities(&scene.frames())
                .iter()
                .all(|velocity| *velocity == [0.0; 3]),
            "{kind}"
        );
        if *kind != "k1_topics_both" {
            assert_eq!(writers(&scene), BTreeSet::new(), "{kind}");
        }
    });
}
