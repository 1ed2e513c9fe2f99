//! People whom a recognition handler on the bus sees: Johnny Five on its servos, and every simulated robot.

use std::fs;

use feetech_sim::register as r;
use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::{Value, json};

use crate::people::{Moved, check};
use crate::servos::Body;
use crate::words;

fn open(section: Value) -> Harness {
    Harness::open::<Robots>(json!({"robots": {"five": section}})).unwrap()
}

#[test]
fn johnny_five_follows_whom_a_handler_sees() {
    let body = Body::new();
    let harness = open(json!({"adapter": "johnny5", "johnny5": body.section()}));
    let (mut left, mut right) = (0, 0);
    let moved = || {
        let (on_left, on_right) = (body.left.frames(), body.right.frames());
        let new_left = &on_left[std::mem::replace(&mut left, on_left.len())..];
        let new_right = &on_right[std::mem::replace(&mut right, on_right.len())..];
        let speeds = (7..=9).flat_map(|wheel| words(new_left, wheel, r::GOAL_SPEED));
        let arms = [("left_arm", new_left), ("right_arm", new_right)];
        let led = |frames| (1..=6).any(|joint| !words(frames, joint, r::GOAL_POSITION).is_empty());
        Moved {
            turns: speeds.filter(|speed| *speed != 0).map(f64::from).collect(),
            arms: arms
                .into_iter()
                .filter_map(|(arm, frames)| led(frames).then_some(arm))
                .collect(),
        }
    };
    check("Johnny Five", &harness, moved);
    assert!(!body.moves());
}

#[test]
fn a_simulated_robot_follows_whom_a_handler_sees() {
    for model in ["johnny5", "booster_k1", "unitree_g1"] {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace");
        let harness = open(json!({"sim": {"model": model, "time_scale": 500, "trace": trace}}));
        let mut seen = 0;
        let moved = || {
            let text = fs::read_to_string(&trace).unwrap();
            let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
            let all: Vec<Value> = lines.collect();
            let new = &all[std::mem::replace(&mut seen, all.len())..];
            let led = |arm: &&str| new.iter().any(|line| line["do"] == "move" && line["on"] == *arm);
            let turn = |line: &Value| line["velocity"][2].as_f64().filter(|turn| turn.abs() > 1e-3);
            Moved {
                turns: new.iter().filter_map(turn).collect(),
                arms: ["left_arm", "right_arm"].into_iter().filter(led).collect(),
            }
        };
        check(model, &harness, moved);
    }
}
