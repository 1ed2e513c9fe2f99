//! People whom a recognition handler on the bus sees: the K1 and the G1 over DDS.

use serde_json::Value;

use crate::people::{Moved, check};
use crate::{Scene, each, scene, velocities};

#[test]
fn the_k1_and_the_g1_follow_whom_a_handler_sees() {
    each(&["k1_topics", "k1_rpc", "g1"], |&kind| {
        let Some(scene) = scene(kind, "hold") else { return };
        check(kind, &scene.harness, || moved(kind, &scene));
    });
}

fn moved(kind: &str, scene: &Scene) -> Moved {
    scene.settle();
    let frames = scene.new_frames();
    let turns = velocities(&frames).into_iter().map(|[_, _, turn]| turn);
    let led = |arm: &&str| {
        let joints = frames.iter().filter_map(|frame| shoulder(kind, frame, arm));
        // One message tells both arms: the one that is held says the same again.
        let (least, most) = joints.fold((f64::MAX, f64::MIN), |(least, most), angle| {
            (least.min(angle), most.max(angle))
        });
        most - least > 0.05
    };
    Moved {
        turns: turns.filter(|turn| *turn != 0.0).collect(),
        arms: ["left_arm", "right_arm"].into_iter().filter(led).collect(),
    }
}

/// What a frame tells an arm's first joint, if it tells it anything.
pub(crate) fn shoulder(kind: &str, frame: &Value, arm: &str) -> Option<f64> {
    let left = arm == "left_arm";
    let angle = match kind {
        "k1_topics" if frame["label"] == arm => &frame["data"][0],
        "k1_rpc" if frame["topic"] == "joints" => &frame["motors"][if left { 2 } else { 6 }][0],
        "g1" if frame["topic"] == "arms" => &frame["motors"][if left { "15" } else { "22" }][0],
        _ => return None,
    };
    angle.as_f64()
}
