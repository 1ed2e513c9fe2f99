//! An arm is never swung to where it was told to be before the robot let go of it or was started anew.

use serde_json::{Value, json};

use crate::{Scene, functions, scene};

/// Frames of one topic.
fn of<'a>(frames: &'a [Value], topic: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame["topic"] == topic).collect()
}

/// Angles and weights of the K1's right arm, the first time that any are told.
fn first_right(frames: &[Value]) -> Vec<[f64; 2]> {
    let first = of(frames, "joints")[0];
    (6..10)
        .map(|joint| {
            let motor = &first["motors"][joint];
            [motor[0].as_f64().unwrap(), motor[3].as_f64().unwrap()]
        })
        .collect()
}

/// The same of the G1, whose one weight is for all.
fn first_right_of_g1(frames: &[Value]) -> (Vec<f64>, f64) {
    let first = of(frames, "arms")[0];
    let angle = |joint: u32| first["motors"][joint.to_string()][0].as_f64().unwrap();
    ((22..29).map(angle).collect(), first["weight"].as_f64().unwrap())
}

fn done(scene: &Scene, tool: &str, args: Value) {
    let output = scene.call(tool, args);
    assert_eq!(output["success"], true, "{tool}: {output}");
}

fn near(angles: impl IntoIterator<Item = f64>, expected: f64) -> bool {
    angles.into_iter().all(|angle| (angle - expected).abs() < 1e-3)
}

#[test]
fn a_g1_that_was_damped_is_led_from_where_its_arms_hang() {
    let Some(scene) = scene("g1", "damp") else { return };
    done(&scene, "go_to_pose", json!({"pose": "arms_up"}));
    scene.harness.halt(&["all"], true).unwrap();
    scene.robot.wait("damping", |_| {
        functions(&scene.frames(), "sport").contains(&7101).then_some(())
    });
    scene.harness.resume().unwrap();
    done(&scene, "move_arm", json!({"arm": "left", "position": "home"}));
    let frames = scene.new_frames();
    let (right, weight) = first_right_of_g1(&frames);
    assert!(near(right.clone(), 0.25), "{right:?}");
    assert!(weight <= 0.041, "the weight begins anew: {weight}");
}

#[test]
fn a_g1_that_was_started_anew_is_led_from_where_its_arms_are() {
    let Some(mut scene) = scene("g1", "hold") else {
        return;
    };
    done(&scene, "go_to_pose", json!({"pose": "arms_up"}));
    scene.robot.say("quit");
    scene.lost();
    scene.start_anew("g1");
    scene.back(("move_arm", json!({"arm": "left", "position": "home"})));
    let (right, _) = first_right_of_g1(&scene.frames());
    assert!(near(right.clone(), 0.0), "{right:?}");
}

#[test]
fn a_k1_that_was_damped_is_asked_for_its_arms_again() {
    let Some(scene) = scene("k1_rpc", "damp") else {
        return;
    };
    done(&scene, "go_to_pose", json!({"pose": "arms_up"}));
    let _ = scene.new_frames();
    scene.harness.halt(&["all"], true).unwrap();
    scene.settle();
    let given_back = |frame: &&Value| frame["api"] == 2030 && frame["body"]["start"] == false;
    assert_eq!(scene.new_frames().iter().filter(given_back).count(), 1);
    scene.harness.resume().unwrap();
    done(&scene, "move_arm", json!({"arm": "left", "position": "home"}));
    let frames = scene.new_frames();
    assert_eq!(functions(&frames, "rpc").first(), Some(&2030), "{frames:?}");
    let right = first_right(&frames);
    assert!(
        right.iter().all(|[_, weight]| *weight == 0.0),
        "this arm was not moved: {right:?}"
    );
}

#[test]
fn a_k1_that_was_started_anew_is_asked_for_its_arms_again() {
    let Some(mut scene) = scene("k1_rpc", "hold") else {
        return;
    };
    done(&scene, "go_to_pose", json!({"pose": "arms_up"}));
    scene.robot.say("quit");
    scene.lost();
    scene.start_anew("k1_rpc");
    scene.back(("move_arm", json!({"arm": "left", "position": "home"})));
    let frames = scene.frames();
    let taken = frames.iter().position(|frame| frame["api"] == 2030);
    let led = frames.iter().position(|frame| frame["topic"] == "joints");
    assert!(taken.is_some() && taken < led, "{taken:?} {led:?}");
    let right = first_right(&frames);
    assert!(near(right.iter().map(|[angle, _]| *angle), 0.0), "{right:?}");
}

#[test]
fn a_stop_moves_no_arm_that_was_moved_by_hand() {
    let Some(scene) = scene("k1_topics", "hold") else {
        return;
    };
    done(&scene, "look_at", json!({"target": "left"}));
    done(&scene, "move_arm", json!({"arm": "left", "position": "arms_up"}));
    let _ = scene.new_frames();
    scene.harness.halt(&["all"], true).unwrap();
    scene.settle();
    let frames = scene.new_frames();
    assert!(
        of(&frames, "head").is_empty(),
        "it is not known where it is: {frames:?}"
    );
    let arms = of(&frames, "arm");
    assert!(
        arms.iter().any(|frame| frame["label"] == "left_arm"),
        "an arm that says where it is is held there: {frames:?}"
    );
}

#[test]
fn a_short_first_move_of_a_k1_takes_the_whole_weight() {
    let Some(scene) = scene("k1_rpc", "hold") else {
        return;
    };
    // Three degrees from where it is: there at once, long before the arm obeys.
    done(
        &scene,
        "move_arm",
        json!({"arm": "right", "position": [3, 0, 0, 0]}),
    );
    let frames = scene.new_frames();
    let last = of(&frames, "joints")[of(&frames, "joints").len() - 1];
    let weight = last["motors"][6][3].as_f64().unwrap();
    assert!((weight - 0.5).abs() < 1e-3, "the arm hardly obeyed: {weight}");
}
