//! A success is what the robot did: every tool on a robot that refuses, answers nothing, does not move, falls silent or is away.

use serde_json::{Value, json};

use crate::truth::{NO_MACHINE, none_succeeds};
use crate::{Scene, each, scene};

const KINDS: [&str; 3] = ["k1_topics", "k1_rpc", "g1"];

/// Tells the robot how to fail, and waits until it does.
pub(crate) fn obey(scene: &Scene, order: &str) {
    let word = order.split(' ').next().unwrap();
    let before = scene.frames().len();
    scene.robot.say(order);
    scene.robot.wait(order, |_| {
        let frames = scene.frames();
        let obeys = |frame: &Value| frame["topic"] == "obeys" && frame["word"] == word;
        frames.get(before..)?.iter().any(obeys).then_some(())
    });
}

/// Whether a tool needs the robot.
fn moves_or_asks(tool: &str) -> bool {
    !NO_MACHINE.contains(&tool)
}

#[test]
fn nothing_succeeds_on_a_robot_that_is_silent() {
    each(&KINDS, |&kind| {
        let Some(scene) = scene(kind, "hold") else { return };
        obey(&scene, "mute 1");
        scene.lost();
        let asked = none_succeeds(
            &format!("{kind} silent"),
            &scene.harness,
            |tool, _| moves_or_asks(tool),
            || (),
        );
        assert!(asked > 10, "{kind}: {asked}");
    });
}

#[test]
fn nothing_succeeds_on_a_robot_that_is_gone() {
    each(&KINDS, |&kind| {
        let Some(scene) = scene(kind, "hold") else { return };
        scene.robot.say("quit");
        scene.lost();
        let asked = none_succeeds(
            &format!("{kind} gone"),
            &scene.harness,
            |tool, _| moves_or_asks(tool),
            || (),
        );
        assert!(asked > 10, "{kind}: {asked}");
    });
}

#[test]
fn nothing_that_is_asked_of_a_robot_succeeds_where_it_refuses_or_says_nothing() {
    // Tools that ask one of the robot's services; the others write to a topic, or read one.
    let k1 = [
        "wave",
        "look_at",
        "nod",
        "move_base",
        "walk",
        "spin",
        "turn",
        "dance",
        "gripper",
        "self_test",
        "move_arm",
    ];
    let g1 = [
        "wave",
        "express",
        "dance",
        "move_base",
        "walk",
        "spin",
        "turn",
        "self_test",
    ];
    // The G1's service for arms has no own action for this.
    let led = |tool: &str, args: &Value| tool == "express" && args["emotion"] != "happy";
    each(&[("k1_rpc", &k1[..]), ("g1", &g1[..])], |&(kind, asks)| {
        for order in ["status 7", "silent"] {
            let Some(scene) = scene(kind, "hold") else { return };
            obey(&scene, order);
            let concerned = |tool: &str, args: &Value| asks.contains(&tool) && !led(tool, args);
            let asked = none_succeeds(&format!("{kind} {order}"), &scene.harness, concerned, || ());
            assert!(asked >= asks.len() - 1, "{kind} {order}: {asked}");
        }
    });
}

#[test]
fn no_arm_succeeds_that_does_not_move() {
    each(&KINDS, |&kind| {
        let Some(scene) = scene(kind, "hold") else { return };
        obey(&scene, "stuck 1");
        for (tool, args) in [
            ("move_arm", json!({"arm": "right", "position": "ready"})),
            ("go_to_pose", json!({"pose": "arms_up"})),
            // The others wave by themselves, and say that they have.
            match kind {
                "k1_topics" => ("wave", json!({"arm": "right"})),
                _ => ("move_arm", json!({"arm": "left", "position": "ready"})),
            },
            ("point_at_person", json!({"name": "30"})),
        ] {
            let Ok(output) = scene.harness.invoke(tool, args.clone()) else {
                continue;
            };
            assert_eq!(output["success"], false, "{kind}: {tool} {args}: {output}");
            let message = output["message"].to_string();
            assert!(
                message.contains("does not move") || message.contains("does not know where"),
                "{kind}: {tool} {args}: {message}"
            );
        }
        if kind == "k1_rpc" {
            let output = scene.call("look_at", json!({"target": "left"}));
            assert_eq!(output["success"], false, "{output}");
        }
        // The arms obey again.
        obey(&scene, "stuck 0");
        let output = scene.call("move_arm", json!({"arm": "right", "position": "ready"}));
        assert_eq!(output["success"], true, "{kind}: {output}");
    });
}
