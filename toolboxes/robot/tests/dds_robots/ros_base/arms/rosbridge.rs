//! The same arm over rosbridge, as the published roslib takes it for one.

use serde_json::{Value, json};

use super::super::over_rosbridge::node;
use super::super::{Scene, scene_of};
use super::{far, file, to_ready};
use crate::each;

pub(super) fn scene(kind: &str) -> Option<Scene> {
    let (arm, port) = node("rosbridge_arm.mjs", &[kind])?;
    let channels = json!({
        "rosbridge": format!("ws://127.0.0.1:{port}"), "ros": {"distro": "humble", "discovery_ms": 8000},
    });
    Some(scene_of(arm, "arm", channels, Some(&file())))
}

#[test]
fn an_arm_over_rosbridge_goes_where_the_joint_states_say_and_grips() {
    each(&["gripper", "parallel"], |kind| {
        let Some(scene) = scene(kind) else { return };
        scene.does(to_ready().0, to_ready().1);
        let done = scene.does("move_arm", json!({"arm": "right", "x": 0.4, "y": -0.2, "z": 0.3}));
        assert!(done["data"]["off_mm"].as_f64().unwrap() < 5.0, "{done:#}");
        scene.does("gripper", json!({"arm": "right", "action": "close"}));
        scene.base.say("thing");
        let cup = json!({"object": "cup", "x": 0.4, "y": 0.1, "z": 0.2});
        let picked = scene.does("pick_object", cup);
        assert!(picked.to_string().contains("\"holding\":true"), "{picked:#}");
        assert_eq!(scene.values("effort").last(), Some(&20.0), "half of its force");
    });
}

#[test]
fn what_an_arm_over_rosbridge_has_not_done_is_said() {
    let rows = [
        (
            "absent",
            to_ready as fn() -> (&'static str, Value),
            "no action /scaled_joint_trajectory_controller/",
        ),
        (
            "other",
            to_ready,
            "is control_msgs/action/GripperCommand in the graph, expected control_msgs/action/Follow",
        ),
    ];
    each(&rows, |(kind, call, expected)| {
        let Some(scene) = scene(kind) else { return };
        let ended = scene.answer(call());
        assert_eq!(ended["success"], false, "{kind}: {ended:#}");
        assert!(ended.to_string().contains(expected), "{kind}: {ended:#}");
    });
}

/// A stop without an instance, and a connection that breaks while the arm moves.
#[test]
fn a_goal_over_rosbridge_outlives_neither_its_instance_nor_its_connection() {
    let Some(scene) = scene("gripper") else { return };
    let run = scene.start(far().0, far().1);
    scene.base.until("\"goal\"");
    scene.harness.safe_stop(scene.config.clone()).unwrap();
    scene.base.until("\"canceled\"");
    assert!(!run.wait().result().is_ok_and(|done| done["success"] == true));

    let goals = scene.goals().len();
    let run = scene.start(far().0, far().1);
    scene
        .base
        .wait("a goal", |_| (scene.goals().len() > goals).then_some(()));
    scene.base.say("away 1000");
    let ended = format!("{:?}", run.wait().result().unwrap_err());
    // Which of them depends on whether the goal has given feedback before.
    let expected = ["is not available", "silent", "may still be running"];
    assert!(expected.iter().any(|what| ended.contains(what)), "{ended}");
    // The goal outlives the connection, and is cancelled over the next one.
    scene.base.wait("its end", |_| {
        (scene.lines_with("\"canceled\"") >= 2).then_some(())
    });
}
