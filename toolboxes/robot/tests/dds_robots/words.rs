//! What the robots are told, tool by tool.

use serde_json::{Value, json};

use crate::{functions, scene, velocities};

#[test]
fn the_k1s_topics_carry_what_they_are_documented_to() {
    let Some(scene) = scene("k1_topics", "hold") else {
        return;
    };
    scene.call(
        "walk",
        json!({"direction": "forward", "speed": 0.3, "duration": 1.0}),
    );
    let received = velocities(&scene.new_frames());
    let walking = received
        .iter()
        .filter(|velocity| **velocity == [0.3, 0.0, 0.0])
        .count();
    assert!((5..=12).contains(&walking), "ten times a second: {received:?}");
    scene.call("look_at", json!({"target": "left"}));
    scene.await_frame("word to the head", |frame| frame["topic"] == "head");
    let frames = scene.new_frames();
    let head: Vec<&Value> = frames.iter().filter(|frame| frame["topic"] == "head").collect();
    assert_eq!(head.last().unwrap()["data"], json!([-45.0, 0.0]), "{head:?}");
    scene.call("go_to_pose", json!({"pose": "arms_up"}));
    for arm in ["left_arm", "right_arm"] {
        scene.await_frame(arm, |frame| frame["label"] == arm && frame["data"][0] == -110.0);
    }
    let frames = scene.new_frames();
    for (arm, sign) in [("left_arm", -1.0), ("right_arm", 1.0)] {
        let arms: Vec<&Value> = frames.iter().filter(|frame| frame["label"] == arm).collect();
        let last: Vec<f64> = serde_json::from_value(arms.last().unwrap()["data"].clone()).unwrap();
        assert_eq!(last[..4], [-110.0, sign * 20.0, 0.0, 10.0], "{arm}");
        // Led there in small steps: 90 degrees a second at most.
        let angles: Vec<f64> = arms
            .iter()
            .map(|frame| frame["data"][0].as_f64().unwrap())
            .collect();
        let times: Vec<f64> = arms.iter().map(|frame| frame["t"].as_f64().unwrap()).collect();
        let span = times.last().unwrap() - times[0];
        assert!(
            angles.len() > 10 && (angles[0] + 110.0).abs() / span < 100.0,
            "{arm}: {angles:?} in {span} s"
        );
    }
}

#[test]
fn the_k1s_own_functions_are_called_as_they_should() {
    let Some(scene) = scene("k1_rpc", "damp") else {
        return;
    };
    scene.call("walk", json!({"direction": "rotate_left", "duration": 0.5}));
    let frames = scene.new_frames();
    let functions_called = functions(&frames, "rpc");
    assert_eq!(
        functions_called[..3],
        [2017, 2000, 2001],
        "the mode once, then velocities: {functions_called:?}"
    );
    assert!(
        functions_called[3..].iter().all(|api| *api == 2001),
        "{functions_called:?}"
    );
    for frame in frames.iter().filter(|frame| frame["topic"] == "rpc") {
        assert_eq!(frame["header"]["req_id"], frame["uuid"], "{frame}");
    }
    scene.call("wave", json!({"arm": "right"}));
    let frames = scene.new_frames();
    let bodies: Vec<&Value> = frames
        .iter()
        .filter(|frame| frame["api"] == 2005)
        .map(|frame| &frame["body"])
        .collect();
    assert_eq!(
        bodies,
        [
            &json!({"hand_index": 1, "hand_action": 0}),
            &json!({"hand_index": 1, "hand_action": 1})
        ]
    );
    scene.call("look_at", json!({"target": "left"}));
    let frames = scene.new_frames();
    let head = frames.iter().find(|frame| frame["api"] == 2043).unwrap();
    assert!(
        (head["body"]["yaw"].as_f64().unwrap() - 45f64.to_radians()).abs() < 1e-6,
        "{head}"
    );
    scene.call("dance", json!({"style": "victory", "duration": 1.0}));
    let frames = scene.new_frames();
    let dances: Vec<i64> = frames
        .iter()
        .filter(|frame| frame["api"] == 2016)
        .map(|frame| frame["body"]["dance_id"].as_i64().unwrap())
        .collect();
    assert_eq!(dances, [6, 1000]);
    scene.call("go_to_pose", json!({"pose": "arms_up"}));
    let frames = scene.new_frames();
    assert_eq!(
        functions(&frames, "rpc").first(),
        Some(&2030),
        "the arms become ours first"
    );
    let weights: Vec<f64> = frames
        .iter()
        .filter(|frame| frame["topic"] == "joints")
        .map(|frame| frame["motors"][6][3].as_f64().unwrap())
        .collect();
    assert!(weights.len() > 20, "{weights:?}");
    assert!(
        weights
            .windows(2)
            .all(|pair| pair[1] >= pair[0] && pair[1] - pair[0] < 0.011),
        "{weights:?}"
    );
    assert!(weights.iter().all(|weight| *weight <= 0.5001));
    for frame in frames.iter().filter(|frame| frame["topic"] == "joints") {
        assert_eq!(frame["motors"].as_array().unwrap().len(), 22);
        assert_eq!(
            frame["motors"][12],
            json!([0.0, 0.0, 0.0, 0.0]),
            "no leg is touched: {frame}"
        );
    }
    let _ = scene.new_frames();
    scene.harness.halt(&["all"], true).unwrap();
    scene.settle();
    let mut functions_called = functions(&scene.new_frames(), "rpc");
    // Zero is said three times; how many of them come before the damping is the scheduler's.
    functions_called.dedup();
    assert_eq!(functions_called[..2], [2001, 2000], "zero, then damping");
}

#[test]
fn the_g1s_own_functions_are_called_as_they_should() {
    let Some(scene) = scene("g1", "damp") else { return };
    scene.call(
        "walk",
        json!({"direction": "forward", "speed": 0.3, "duration": 1.0}),
    );
    let received = velocities(&scene.new_frames());
    assert!(
        received
            .iter()
            .filter(|velocity| **velocity == [0.3, 0.0, 0.0])
            .count()
            >= 4,
        "{received:?}"
    );
    scene.call("wave", json!({"arm": "right", "style": "shy"}));
    let frames = scene.new_frames();
    let actions: Vec<&Value> = frames
        .iter()
        .filter(|frame| frame["topic"] == "arm")
        .map(|frame| &frame["parameter"])
        .collect();
    assert_eq!(
        actions,
        [
            &json!({"action_id": 25, "data": 25}),
            &json!({"action_id": 99, "data": 99})
        ]
    );

    scene.call("go_to_pose", json!({"pose": "arms_open"}));
    let frames = scene.new_frames();
    let arms: Vec<&Value> = frames.iter().filter(|frame| frame["topic"] == "arms").collect();
    let weights: Vec<f64> = arms
        .iter()
        .map(|frame| frame["weight"].as_f64().unwrap())
        .collect();
    assert!(
        weights[0] <= 0.041 && (weights.last().unwrap() - 1.0).abs() < 1e-6,
        "{weights:?}"
    );
    assert!(
        weights
            .windows(2)
            .all(|pair| pair[1] - pair[0] < 0.041 && pair[1] >= pair[0]),
        "{weights:?}"
    );
    for frame in &arms {
        assert_eq!(frame["crc"], true, "the vendor's checksum: {frame}");
        for joint in 12..29 {
            assert!(
                frame["motors"][joint.to_string()][1].as_f64().unwrap() > 0.0,
                "joint {joint} hangs: {frame}"
            );
        }
        assert!(
            (frame["motors"]["12"][0].as_f64().unwrap() - 0.1).abs() < 1e-6,
            "the waist stays: {frame}"
        );
        assert!(frame["motors"].get("0").is_none(), "no leg is touched: {frame}");
    }
    let roll = arms.last().unwrap()["motors"]["23"][0].as_f64().unwrap();
    assert!(
        (roll - 60f64.to_radians()).abs() < 1e-3,
        "right shoulder roll at {roll}"
    );
    // Two actions at once would fight: its own waits until the arms are given back.
    let refused = scene.harness.invoke("wave", json!({"arm": "right"})).unwrap();
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("call go_to_pose with pose home"),
        "{refused}"
    );
    scene.call("go_to_pose", json!({"pose": "home"}));
    let frames = scene.new_frames();
    let last = frames
        .iter()
        .rev()
        .find(|frame| frame["topic"] == "arms")
        .unwrap();
    assert_eq!(last["weight"], 0.0, "and the arms are the robot's again");
    scene.call("gripper", json!({"arm": "left", "action": "close"}));
    let frames = scene.new_frames();
    assert!(
        frames
            .iter()
            .any(|frame| frame["topic"] == "hand" && frame["side"] == "left")
    );
    let _ = scene.new_frames();
    scene.harness.halt(&["all"], true).unwrap();
    scene.settle();
    let frames = scene.new_frames();
    let mut functions_called = functions(&frames, "sport");
    functions_called.dedup();
    assert_eq!(
        functions_called[..2],
        [7105, 7101],
        "zero, then damping: {frames:?}"
    );
}
