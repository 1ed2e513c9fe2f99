//! The G1's own arm actions, on a robot that answers them when they are over.

use ovos_toolbox_sdk::testing::Run;
use serde_json::{Value, json};

use crate::{Scene, each, scene};

const RELEASE: i64 = 99;

/// The arm actions that the robot was asked for.
fn asked(frames: &[Value]) -> Vec<i64> {
    let actions = frames.iter().filter(|frame| frame["topic"] == "arm");
    actions
        .map(|frame| frame["parameter"]["action_id"].as_i64().unwrap())
        .collect()
}

/// And those that it has performed.
fn over(frames: &[Value]) -> Vec<i64> {
    let actions = frames.iter().filter(|frame| frame["topic"] == "arm over");
    actions.map(|frame| frame["action"].as_i64().unwrap()).collect()
}

fn released(scene: &Scene) {
    scene.robot.wait("the release", |_| {
        (over(&scene.frames()).last() == Some(&RELEASE)).then_some(())
    });
}

/// Starts the action 15 of the right arm.
fn start_right_arm(scene: &Scene) -> Run<'_> {
    let plan = scene
        .harness
        .plan("express", json!({"emotion": "excited"}))
        .unwrap();
    let right = plan
        .unwrap()
        .into_iter()
        .find(|action| action.subsystems[0] == "right_arm");
    scene
        .harness
        .start_action("express", right.unwrap(), json!({}))
        .unwrap()
}

#[test]
fn an_action_takes_its_time_and_the_arms_are_released() {
    let rows = [
        ("wave", json!({"arm": "right"}), 26, "gesture 3000"),
        // Longer than any of the robot's own.
        (
            "wave",
            json!({"arm": "right", "style": "shy"}),
            25,
            "gesture 11000",
        ),
        // Is held up until it is released.
        ("express", json!({"emotion": "excited"}), 15, "gesture 2000"),
        (
            "dance",
            json!({"style": "groovy", "duration": 3}),
            17,
            "gesture 1000",
        ),
    ];
    each(&rows, |(tool, args, action, gesture)| {
        let Some(scene) = scene("g1", "hold") else { return };
        scene.robot.say(gesture);
        let output = scene.call(tool, args.clone());
        let frames = scene.new_frames();
        assert_eq!(output["success"], true, "{tool} {gesture}: {output} {frames:?}");
        assert_eq!(asked(&frames), [*action, RELEASE], "{tool} {gesture}: {frames:?}");
        assert_eq!(over(&frames), [*action, RELEASE], "{tool} {gesture}");
        // Another one is possible at once.
        scene.robot.say("gesture 100");
        let output = scene.call("wave", json!({"arm": "right"}));
        assert_eq!(
            output["success"],
            true,
            "{tool} {gesture}: {output} {:?}",
            scene.frames()
        );
    });
}

#[test]
fn an_action_waits_for_the_robots_arm_service() {
    let Some(scene) = scene("g1_late_arms", "hold") else {
        return;
    };
    scene.robot.say("gesture 500");
    let output = scene.call("wave", json!({"arm": "right"}));
    assert_eq!(output["success"], true, "{output}");
    assert_eq!(over(&scene.frames()), [26, RELEASE]);
}

#[test]
fn every_end_of_an_action_releases_the_arms() {
    each(&["cancel", "stop", "silent"], |&end| {
        let Some(scene) = scene("g1", "hold") else { return };
        // Held up afterwards; a release is refused while it is under way, and is said again.
        scene.robot.say("gesture 2000");
        let run = start_right_arm(&scene);
        scene.robot.wait("the action", |_| {
            asked(&scene.frames()).contains(&15).then_some(())
        });
        match end {
            "cancel" => {
                scene.harness.cancel(run.id());
                scene.harness.halt(&["right_arm"], false).unwrap();
            }
            "stop" => scene.harness.halt(&["all"], true).unwrap(),
            _ => scene.robot.say("silent"),
        }
        released(&scene);
        let frames = scene.frames();
        assert!(
            frames.iter().any(|frame| frame["code"] == 7400) || end == "silent",
            "{end}: {frames:?}"
        );
        let _ = run.wait();
    });
}

#[test]
fn a_robot_that_refuses_an_action_says_why() {
    let Some(scene) = scene("g1", "hold") else { return };
    scene.robot.say("status 7404");
    scene.robot.until("obeys");
    for (tool, args) in [
        ("wave", json!({"arm": "right"})),
        ("express", json!({"emotion": "happy"})),
        ("dance", json!({"style": "happy", "duration": 0.5})),
    ] {
        let refused = scene.call(tool, args);
        assert_eq!(refused["success"], false, "{tool}: {refused}");
        let why = refused["message"].as_str().unwrap();
        assert!(why.contains("7404 (not in this state"), "{tool}: {refused}");
        assert_eq!(
            asked(&scene.new_frames()).len(),
            1,
            "{tool}: nothing was begun, and nothing is released"
        );
    }
}

#[test]
fn an_arm_that_its_own_wave_does_not_move_is_said() {
    let Some(scene) = scene("g1", "hold") else { return };
    scene.robot.say("gesture 100");
    let refused = scene.harness.invoke("wave", json!({"arm": "left"})).unwrap_err();
    assert!(
        refused
            .message
            .contains("not supported by hal: waving with left_arm"),
        "{refused:?}"
    );
    assert!(asked(&scene.frames()).is_empty());
    let waved = scene.call("wave", json!({"arm": "both"}));
    assert_eq!(waved["success"], true, "{waved}");
    assert!(
        waved["message"]
            .as_str()
            .unwrap()
            .contains("left_arm did not wave"),
        "{waved}"
    );
    assert_eq!(asked(&scene.new_frames()), [26, RELEASE]);
}

#[test]
fn arms_that_perform_an_action_are_neither_led_nor_asked_for_another() {
    let Some(scene) = scene("g1", "hold") else { return };
    let run = scene.start("wave", json!({"arm": "right"}));
    scene
        .robot
        .wait("the wave", |_| (!asked(&scene.frames()).is_empty()).then_some(()));
    for (tool, args) in [
        ("move_arm", json!({"arm": "left", "position": "home"})),
        ("wave", json!({"arm": "right"})),
    ] {
        let refused = scene.harness.invoke(tool, args).unwrap();
        let why = refused["message"].as_str().unwrap();
        assert!(
            why.contains("of the robot's own: wait until it is over"),
            "{tool}: {refused}"
        );
    }
    let ended = run.wait().result();
    let frames = scene.frames();
    assert!(ended.is_ok(), "{ended:?} {frames:?}");
    assert_eq!(asked(&frames), [26, RELEASE], "{frames:?}");
    assert!(frames.iter().all(|frame| frame["topic"] != "arms"), "{frames:?}");
}

/// The robot would hold it for up to 20 s.
#[test]
fn an_action_that_outlives_its_process_is_ended_by_a_safe_stop() {
    let Some(scene) = scene("g1", "hold") else { return };
    scene.robot.say("gesture 1");
    let run = start_right_arm(&scene);
    scene
        .robot
        .wait("the action", |_| (over(&scene.frames()) == [15]).then_some(()));
    scene.harness.safe_stop(scene.config.clone()).unwrap();
    released(&scene);
    let _ = run.wait();
}

/// The first is made of our own frames, which lead the arms joint by joint; the second is the robot's.
#[test]
fn an_emotion_of_ours_leaves_the_arms_for_one_of_the_robots_own() {
    let Some(scene) = scene("g1", "hold") else { return };
    for emotion in ["sad", "proud", "sad", "happy"] {
        let output = scene.call("express", json!({"emotion": emotion}));
        assert_eq!(output["success"], true, "{emotion}: {output}");
    }
}
