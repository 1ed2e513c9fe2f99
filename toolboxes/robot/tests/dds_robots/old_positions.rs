//! A position that a robot told a while ago: no arm starts from it, is held at it or is judged by it.

use serde_json::{Value, json};

use crate::followed::shoulder;
use crate::success::obey;
use crate::{Scene, each, scene};

/// Where a frame sends an arm's first joint, in degrees.
fn degrees(kind: &str, frame: &Value, arm: &str) -> Option<f64> {
    let angle = shoulder(kind, frame, arm)?;
    Some(if kind == "k1_topics" {
        angle
    } else {
        angle.to_degrees()
    })
}

/// Where an arm's first joint was sent, one after another.
fn sent(kind: &str, scene: &Scene, arm: &str) -> Vec<f64> {
    let frames = scene.frames();
    let each = frames.iter().filter_map(|frame| degrees(kind, frame, arm));
    each.collect()
}

/// Waits until an arm that is led up was sent below this angle.
fn led_below(kind: &str, scene: &Scene, arm: &str, angle: f64) {
    scene.robot.wait("the arm on its way up", |_| {
        sent(kind, scene, arm)
            .last()
            .filter(|last| **last < angle)
            .map(drop)
    });
}

/// An arm that goes up is at no time sent back by more than these degrees.
fn never_swings(what: &str, angles: &[f64], back: f64) {
    let swings = angles.windows(2).find(|pair| pair[1] > pair[0] + back);
    assert_eq!(swings, None, "{what}: {angles:?}");
}

#[test]
fn an_arm_that_is_not_told_of_any_more_is_not_led_and_not_swung_by_a_stop() {
    let kind = "k1_topics";
    let Some(scene) = scene(kind, "hold") else { return };
    let run = scene.start("move_arm", json!({"arm": "left", "position": "arms_up"}));
    led_below(kind, &scene, "left_arm", -20.0);
    obey(&scene, "hush 1");
    let before = sent(kind, &scene, "left_arm").len() - 1;
    let unsaid = "has not reported the position of left_arm shoulder_pitch";
    let failure = run.wait().result().unwrap_err();
    assert!(failure.message.contains(unsaid), "{failure:?}");
    // The head's joints are still told: the robot as a whole is not silent.
    scene.harness.halt(&["all"], true).unwrap();
    scene.settle();
    let angles = sent(kind, &scene, "left_arm");
    never_swings(kind, &angles[before..], 10.0);
    scene.harness.resume().unwrap();
    for (tool, args) in [
        ("move_arm", json!({"arm": "left", "position": "home"})),
        ("motor_status", json!({"subsystem": "left_arm"})),
    ] {
        let refused = scene.call(tool, args);
        assert_eq!(refused["success"], false, "{tool}: {refused}");
        let why = refused["message"].as_str().unwrap();
        assert!(
            why.contains(unsaid) && why.contains("/joint_states"),
            "{tool}: {why}"
        );
        assert_eq!(
            sent(kind, &scene, "left_arm").len(),
            angles.len(),
            "{tool} moves it"
        );
    }
    // It is told of again, and led from where it is.
    obey(&scene, "hush 0");
    scene.back(("move_arm", json!({"arm": "left", "position": "home"})));
    let angles = sent(kind, &scene, "left_arm").split_off(angles.len());
    assert!(angles[0] < -90.0, "{angles:?}");
}

#[test]
fn a_stop_while_the_robot_tells_nothing_swings_no_arm() {
    // The way of a tenth of a second at the largest speed, in which a measured position counts, and twice as far.
    let rows = [("k1_topics", 9.0), ("k1_rpc", 6.0), ("g1", 3.0)];
    each(&rows, |&(kind, tenth)| {
        let Some(scene) = scene(kind, "hold") else { return };
        let run = scene.start("move_arm", json!({"arm": "right", "position": "arms_up"}));
        led_below(kind, &scene, "right_arm", -20.0);
        obey(&scene, "mute 1");
        let before = sent(kind, &scene, "right_arm");
        let far = before[before.len() - 1] - 2.0 * tenth;
        scene
            .robot
            .wait("the arm twice as far, or the end of a silent robot", |_| {
                let is_lost = |data: &Value| data["state"] == "lost";
                let events = scene.harness.events();
                let lost = events
                    .iter()
                    .any(|event| event.data.as_ref().is_some_and(is_lost));
                let last = sent(kind, &scene, "right_arm").last().copied();
                (lost || last.is_some_and(|last| last < far)).then_some(())
            });
        scene.harness.cancel(run.id());
        scene.harness.halt(&["right_arm"], false).unwrap();
        let _ = run.wait();
        scene.settle();
        never_swings(kind, &sent(kind, &scene, "right_arm")[before.len() - 1..], tenth);
    });
}

#[test]
fn a_stop_while_a_k1_tells_nothing_turns_its_head_not_back() {
    let Some(scene) = scene("k1_rpc", "hold") else {
        return;
    };
    let looked = scene.call("look_at", json!({"target": "left"}));
    assert_eq!(looked["success"], true, "{looked}");
    obey(&scene, "mute 1");
    let _ = scene.new_frames();
    let run = scene.start("look_at", json!({"target": "right"}));
    scene.await_frame("a turn of the head", |frame| frame["api"] == 2043);
    // The head is on its way for more than a tenth of a second.
    scene.settle();
    scene.harness.cancel(run.id());
    scene.harness.halt(&["gantry"], false).unwrap();
    let _ = run.wait();
    scene.settle();
    let frames = scene.new_frames();
    let held = frames.iter().filter(|frame| frame["api"] == 2004);
    let left = 45f64.to_radians();
    for frame in held {
        let yaw = frame["body"]["yaw"].as_f64().unwrap();
        assert!(yaw < left - 0.1, "it is turned back to {yaw}: {frame}");
    }
}
