//! What a walk took, and a robot that hears and has stopped saying where its joints are.

use serde_json::{Value, json};

use crate::{Scene, each, scene, velocities};

const KINDS: [&str; 3] = ["k1_topics", "k1_rpc", "g1"];

fn walk(scene: &Scene) -> Value {
    scene.call(
        "walk",
        json!({"direction": "forward", "speed": 0.2, "duration": 0.5}),
    )
}

/// Between the first velocity that is none and the zero after it, as the robot heard them.
fn driven(frames: &[Value]) -> f64 {
    let received: Vec<(f64, bool)> = frames
        .iter()
        .filter_map(|frame| {
            let velocity = velocities(std::slice::from_ref(frame)).first().copied()?;
            Some((frame["t"].as_f64()?, velocity[0] > 0.0))
        })
        .collect();
    let start = received.iter().position(|(_, moves)| *moves).unwrap();
    let end = received[start..].iter().find(|(_, moves)| !moves).unwrap();
    end.0 - received[start].0
}

#[test]
fn the_time_of_a_walk_is_the_time_that_the_robot_walked() {
    each(&KINDS, |&kind| {
        let Some(scene) = scene(kind, "hold") else { return };
        // It is rounded to a tenth, and a busy machine delivers late: one of three comes out right. With the 0.2 s for which
        // zero is said at the end none would.
        let excess: Vec<f64> = (0..3)
            .map(|_| {
                let output = walk(&scene);
                assert_eq!(output["success"], true, "{kind}: {output}");
                let reported = output["data"]["duration_s"].as_f64().unwrap();
                assert!(reported >= 0.5, "{kind}: {output}");
                reported - driven(&scene.new_frames())
            })
            .collect();
        assert!(
            excess.iter().any(|excess| excess.abs() < 0.1),
            "{kind}: {excess:?} s too much"
        );
    });
}

#[test]
fn a_robot_that_hears_and_says_nothing_is_called_silent_until_it_speaks_again() {
    each(&KINDS, |&kind| {
        let Some(scene) = scene(kind, "hold") else { return };
        assert_eq!(walk(&scene)["success"], true, "{kind}");
        scene.robot.say("mute 1");
        scene.lost();
        let notice = scene.harness.events().into_iter().rev();
        let notice = notice
            .filter_map(|event| event.data)
            .find(|data| data["state"] == "lost");
        let refused = walk(&scene);
        assert_eq!(refused["success"], false, "{kind}: {refused}");
        for said in [
            notice.unwrap()["reason"].to_string(),
            refused["message"].to_string(),
        ] {
            assert!(
                said.contains("the robot is silent") && !said.contains("receive commands"),
                "{kind}: {said}"
            );
        }
        scene.robot.say("mute 0");
        scene.back(("walk", json!({"duration": 0.3})));
        // What `status` shows is the last word.
        scene.robot.wait("word that it is back", |_| {
            let last = scene
                .harness
                .events()
                .into_iter()
                .rev()
                .find(|event| event.kind == "backend");
            (last?.data?["state"] == "connected").then_some(())
        });
    });
}
