//! How motion ends: by a halt, from nothing, and when the robot refuses, falls silent or goes away.

use std::time::Instant;

use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::{Value, json};

use crate::{Scene, domain, each, scene, velocities, walking};

/// A wave and a dance of the robot's own would go on for ever. The dance moves the base, too.
#[test]
fn what_a_k1_does_of_its_own_ends_with_a_halt() {
    let wave = |action: i64| json!({"hand_index": 1, "hand_action": action});
    let dance = |id: i64| json!({ "dance_id": id });
    let (waves, dances) = ((2005, [wave(0), wave(1)]), (2016, [dance(7), dance(1000)]));
    let rows = [
        ("wave", json!({"arm": "right"}), "right_arm", waves),
        ("dance", json!({"duration": 20.0}), "right_arm", dances.clone()),
        ("dance", json!({"duration": 20.0}), "base", dances),
    ];
    each(&rows, |(tool, args, halted, (function, both))| {
        let Some(scene) = scene("k1_rpc", "hold") else {
            return;
        };
        let plan = scene.harness.plan(tool, args.clone()).unwrap().unwrap();
        let action = plan
            .into_iter()
            .find(|action| action.subsystems[0] == "right_arm")
            .unwrap();
        let base = action.subsystems.contains(&"base".to_owned());
        assert_eq!(base, *tool == "dance", "{tool} holds {:?}", action.subsystems);
        let requests = || -> Vec<Value> {
            let frames = scene.frames().into_iter();
            frames
                .filter(|frame| frame["api"] == *function)
                .map(|frame| frame["body"].clone())
                .collect()
        };
        let run = scene.harness.start_action(tool, action, json!({})).unwrap();
        scene
            .robot
            .wait(tool, |_| (requests() == both[..1]).then_some(()));
        scene.harness.cancel(run.id());
        scene.harness.halt(&[halted], false).unwrap();
        scene
            .robot
            .wait("its end", |_| (requests().len() > 1).then_some(()));
        let _ = run.wait();
        scene.settle();
        // An end that is confirmed late is said again.
        let requests = requests();
        assert_eq!(requests[0], both[0], "{tool}");
        assert!(
            requests[1..].iter().all(|end| *end == both[1]),
            "{tool}: {requests:?}"
        );
    });
}

/// What ends the waves and the dance of a K1.
fn ends() -> [(i64, Value); 3] {
    [
        (2005, json!({"hand_index": 0, "hand_action": 1})),
        (2005, json!({"hand_index": 1, "hand_action": 1})),
        (2016, json!({"dance_id": 1000})),
    ]
}

fn count(frames: &[Value], (function, body): &(i64, Value)) -> usize {
    let is = |frame: &&Value| frame["api"] == *function && frame["body"] == *body;
    frames.iter().filter(is).count()
}

/// Starts the robot's own wave with the right arm and waits until the robot hears of it.
fn waving(scene: &Scene) -> ovos_toolbox_sdk::testing::Run<'_> {
    let plan = scene
        .harness
        .plan("wave", json!({"arm": "right"}))
        .unwrap()
        .unwrap();
    let action = plan.into_iter().next().unwrap();
    let run = scene.harness.start_action("wave", action, json!({})).unwrap();
    let begin = (2005, json!({"hand_index": 1, "hand_action": 0}));
    scene
        .robot
        .wait("a wave", |_| (count(&scene.frames(), &begin) > 0).then_some(()));
    run
}

#[test]
fn an_end_that_the_robot_does_not_answer_is_said_again() {
    let Some(scene) = scene("k1_rpc", "hold") else {
        return;
    };
    let right = &ends()[1];
    let run = waving(&scene);
    scene.robot.say("silent");
    let failure = run.wait().result().unwrap_err();
    assert!(failure.message.contains("no answer"), "{failure:?}");
    scene.robot.wait("its end once more", |_| {
        (count(&scene.frames(), right) >= 2).then_some(())
    });
    scene.settle();
    let _ = scene.new_frames();
    // Every end is sent, because a process that has died may have begun any routine.
    scene.harness.halt(&["all"], true).unwrap();
    scene.settle();
    let frames = scene.new_frames();
    for end in ends() {
        assert!(count(&frames, &end) >= 1, "{end:?}: {frames:?}");
    }
}

#[test]
fn a_k1_that_comes_back_is_told_the_end_that_it_missed() {
    let Some(mut scene) = scene("k1_rpc", "hold") else {
        return;
    };
    let run = waving(&scene);
    scene.robot.say("quit");
    scene.lost();
    let failure = run.wait().result().unwrap_err();
    assert!(failure.message.contains("is not connected"), "{failure:?}");
    scene.start_anew("k1_rpc");
    let right = &ends()[1];
    scene.robot.wait("the end of the wave", |_| {
        (count(&scene.frames(), right) >= 1).then_some(())
    });
}

#[test]
fn a_safe_stop_needs_no_instance() {
    let rows = [
        ("k1_topics", "hold", 0),
        ("k1_rpc", "damp", 2000),
        ("g1", "torque_off", 7101),
    ];
    each(&rows, |&(kind, estop, last)| {
        let Some(scene) = scene(kind, estop) else { return };
        scene.settle();
        let _ = scene.new_frames();
        let start = Instant::now();
        scene.harness.safe_stop(scene.config.clone()).unwrap();
        println!("{kind}: safe_stop took {:?}", start.elapsed());
        scene.settle();
        let frames = scene.new_frames();
        assert!(velocities(&frames).contains(&[0.0; 3]), "{kind}: {frames:?}");
        if last != 0 {
            assert!(
                frames.iter().any(|frame| frame["api"] == last),
                "{kind}: {frames:?}"
            );
        }
        if kind == "k1_rpc" {
            for end in ends() {
                assert!(count(&frames, &end) >= 1, "{end:?}: {frames:?}");
            }
        }
    });
}

#[test]
fn a_robot_that_refuses_or_goes_silent_is_said_and_stopped() {
    let rows = [
        ("k1_rpc", "status 501", "501 (refused)"),
        ("k1_rpc", "silent", "no answer on /LocoApiTopicReq"),
        ("g1", "status 7301", "7301 (not available in the robot's state"),
        ("g1", "silent", "no answer on /api/sport/request"),
    ];
    each(&rows, |&(kind, command, expected)| {
        let Some(scene) = scene(kind, "hold") else { return };
        let run = walking(&scene, "walk");
        scene.robot.say(command);
        let failure = run.wait().result().unwrap_err();
        assert!(
            failure.message.contains(expected),
            "{kind} {command}: {failure:?}"
        );
        scene.settle();
        assert_eq!(
            velocities(&scene.frames()).last(),
            Some(&[0.0; 3]),
            "{kind} {command}"
        );
    });
}

#[test]
fn a_robot_that_goes_away_is_said_and_comes_back() {
    each(&["k1_topics", "k1_rpc", "g1"], |&kind| {
        let Some(mut scene) = scene(kind, "hold") else {
            return;
        };
        let run = walking(&scene, "walk");
        scene.robot.say("quit");
        scene.lost();
        let failure = run.wait().result().unwrap_err();
        assert!(
            failure.message.contains("is not connected"),
            "{kind}: {failure:?}"
        );
        let away = scene.harness.invoke("walk", json!({"duration": 0.5})).unwrap();
        assert_eq!(away["success"], false, "{kind}: {away}");
        scene.start_anew(kind);
        scene.back(("walk", json!({"direction": "forward", "duration": 0.5})));
        assert!(
            velocities(&scene.frames())
                .iter()
                .any(|velocity| velocity[0] > 0.0),
            "{kind}"
        );
    });
}

#[test]
fn a_robot_that_is_not_there_delays_no_call() {
    let domain = domain();
    let ros = json!({"domain": domain, "interfaces": ["127.0.0.1"], "discovery_ms": 300});
    let config = json!({"robots": {"hal": {"adapter": "unitree_g1", "unitree_g1": {"ros": ros}}}});
    let harness = Harness::open::<Robots>(config).unwrap();
    let away = harness.invoke("walk", json!({"duration": 0.5})).unwrap();
    assert!(
        away["message"].as_str().unwrap().contains("hal is not connected"),
        "{away}"
    );
    harness.halt(&["all"], true).unwrap();
}
