//! A K1 behind topics of which nothing hears some, or that does not say where its joints are.

use serde_json::json;

use crate::{scene, velocities};

#[test]
fn a_topic_that_nothing_hears_fails_the_tools_that_need_it() {
    let Some(scene) = scene("k1_topics_base", "hold") else {
        return;
    };
    let walked = scene.call("walk", json!({"direction": "forward", "duration": 0.3}));
    assert_eq!(walked["success"], true, "{walked}");
    assert!(
        velocities(&scene.new_frames())
            .iter()
            .any(|velocity| velocity[0] > 0.0)
    );
    for (tool, args, topic) in [
        ("wave", json!({"arm": "right"}), "/arm/joint_positions"),
        (
            "move_arm",
            json!({"arm": "left", "position": "home"}),
            "/arm/joint_positions",
        ),
        ("look_at", json!({"target": "left"}), "/head/pan_tilt"),
        ("nod", json!({}), "/head/pan_tilt"),
        (
            "self_test",
            json!({"subsystems": ["right_arm"]}),
            "/arm/joint_positions",
        ),
    ] {
        let refused = scene.call(tool, args);
        assert_eq!(refused["success"], false, "{tool}: {refused}");
        let why = refused["message"].as_str().unwrap();
        assert!(
            why.contains(&format!("nothing subscribes to {topic}")),
            "{tool}: {refused}"
        );
    }
    scene.harness.halt(&["all"], false).unwrap();
}

#[test]
fn a_robot_that_does_not_say_where_it_is_moves_at_its_own_pace() {
    let Some(scene) = scene("k1_topics_blind", "hold") else {
        return;
    };
    for (tool, args) in [
        ("wave", json!({"arm": "right"})),
        ("move_arm", json!({"arm": "left", "position": "home"})),
    ] {
        let output = scene.call(tool, args);
        assert_eq!(output["success"], true, "{tool}: {output}");
        let message = output["message"].as_str().unwrap();
        assert!(message.contains("it moved at its own pace"), "{tool}: {output}");
    }
}
