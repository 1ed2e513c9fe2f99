//! A K1 that falls: it says so on `/fall_down`, and it is not moved until it stands.

use serde_json::{Value, json};

use crate::{Scene, functions, scene, velocities, walking};

/// Waits until the toolbox has said this of the robot.
fn await_notice(scene: &Scene, state: &str, reason: &str) {
    scene.robot.wait(reason, |_| {
        let events = scene.harness.events();
        let found = events.iter().any(|event| {
            let data = event.data.clone().unwrap_or(Value::Null);
            let text = data["reason"].as_str().unwrap_or_default();
            event.kind == "backend" && data["state"] == state && text.contains(reason)
        });
        found.then_some(())
    });
}

#[test]
fn it_is_not_moved_before_it_has_said_that_it_stands() {
    let Some(scene) = scene("k1_rpc_unsaid", "hold") else {
        return;
    };
    for (word, expected) in [
        ("", "no report on /fall_down whether the robot stands"),
        ("fall 2", "the robot has fallen and lies on the floor"),
    ] {
        if !word.is_empty() {
            scene.robot.say(word);
            await_notice(&scene, "degraded", expected);
        }
        for (tool, args) in [
            ("walk", json!({"direction": "forward", "duration": 0.3})),
            ("go_to_pose", json!({"pose": "arms_up"})),
        ] {
            let refused = scene.call(tool, args);
            assert_eq!(refused["success"], false, "{word}: {tool}: {refused}");
            let why = refused["message"].as_str().unwrap();
            assert!(why.contains(expected), "{word}: {tool}: {why}");
            let frames = scene.new_frames();
            let driven = velocities(&frames).iter().any(|velocity| *velocity != [0.0; 3]);
            assert!(
                !driven && frames.iter().all(|frame| frame["topic"] != "joints"),
                "{frames:?}"
            );
        }
        let asked = scene.call("self_test", json!({"subsystems": ["right_arm"]}));
        assert_eq!(asked["success"], true, "what moves nothing is done: {asked}");
    }
    scene.robot.say("fall 0");
    await_notice(&scene, "connected", "it stands again");
    let walked = scene.call("walk", json!({"direction": "forward", "duration": 0.3}));
    assert_eq!(walked["success"], true, "{walked}");
}

#[test]
fn it_is_not_moved_until_it_stands() {
    let Some(scene) = scene("k1_rpc", "hold") else {
        return;
    };
    let run = walking(&scene, "walk");
    scene.robot.say("fall 1");
    let failure = run.wait().result().unwrap_err();
    assert!(failure.message.contains("the robot is falling"), "{failure:?}");
    scene.settle();
    assert_eq!(velocities(&scene.frames()).last(), Some(&[0.0; 3]));

    for (word, expected) in [
        ("fall 2", "the robot has fallen and lies on the floor"),
        ("fall 3", "the robot is getting up"),
    ] {
        scene.robot.say(word);
        await_notice(&scene, "degraded", expected);
        for (tool, args) in [
            ("walk", json!({"direction": "forward", "duration": 0.5})),
            ("wave", json!({"arm": "right"})),
            ("look_at", json!({"target": "left"})),
            ("go_to_pose", json!({"pose": "arms_up"})),
        ] {
            scene.settle();
            let _ = scene.new_frames();
            let refused = scene.harness.invoke(tool, args).unwrap();
            assert_eq!(refused["success"], false, "{word}: {tool}: {refused}");
            assert!(
                refused["message"].as_str().unwrap().contains(expected),
                "{word}: {tool}: {refused}"
            );
            scene.settle();
            let frames = scene.new_frames();
            let moved = functions(&frames, "rpc").into_iter().any(|api| api != 2001);
            let driven = velocities(&frames).iter().any(|velocity| *velocity != [0.0; 3]);
            let led = frames.iter().any(|frame| frame["topic"] == "joints");
            assert!(!moved && !driven && !led, "{word}: {tool}: {frames:?}");
        }
        let asked = scene.call("self_test", json!({"subsystems": ["right_arm"]}));
        assert_eq!(asked["success"], true, "what moves nothing is done: {asked}");
    }

    // A stop is not lifted from a robot that lies.
    scene.harness.halt(&["all"], true).unwrap();
    let refusal = scene.harness.resume().unwrap_err().to_string();
    assert!(refusal.contains("is getting up"), "{refusal}");
    scene.robot.say("fall 0");
    await_notice(&scene, "connected", "it stands again");
    scene.harness.resume().unwrap();
    let walked = scene.call("walk", json!({"direction": "forward", "duration": 0.3}));
    assert_eq!(walked["success"], true, "{walked}");
}
