//! How a hand is judged: by what it was told, and by the force that it is sent.

use serde_json::json;

use super::{file, scene_with};
use crate::each;
use crate::peers::domain;

/// A hand is judged by how far it was told to go, and by the room that is left.
#[test]
fn a_hand_that_is_told_to_close_in_part_is_judged_by_that() {
    let close = || ("gripper", json!({"arm": "right", "action": "close"}));
    // How far it closes in percent, what is said to it, and whether it holds something then: a thing of 3 cm is 37.5 % wide.
    let rows = [
        ("gripper", 40, "", Some(false)),
        ("parallel", 40, "", Some(false)),
        ("gripper", 20, "thing", Some(true)),
        ("parallel", 35, "thing", Some(true)),
        ("parallel", 20, "vague thing", Some(true)),
        ("gripper", 40, "jams", None),
        ("parallel", 40, "sticks", None),
    ];
    let check = |&(kind, closed, words, holds): &(&str, i32, &str, Option<bool>)| {
        let case = format!("{kind} {closed} {words}");
        let file = file().replace("closed = 0, max_speed", &format!("closed = {closed}, max_speed"));
        let Some(scene) = scene_with(kind, domain(), &file) else {
            return;
        };
        words.split_whitespace().for_each(|word| scene.base.say(word));
        let done = scene.answer(close());
        let Some(holds) = holds else {
            assert_eq!(done["success"], false, "{case}: {done:#}");
            assert!(done.to_string().contains("did not close"), "{case}: {done:#}");
            return;
        };
        assert_eq!(done["success"], true, "{case}: {done:#}");
        assert!(
            done.to_string().contains(&format!("\"holding\":{holds}")),
            "{case}: {done:#}"
        );
        let opened = scene.does("gripper", json!({"arm": "right", "action": "open"}));
        assert_eq!(opened["data"]["gripper_percent"], 100.0, "{case}: {opened:#}");
    };
    rows.chunks(3).for_each(|some| each(some, check));
}

/// Zero newtons are no force for one controller, and all of it for another.
#[test]
fn a_hand_is_never_sent_a_force_of_zero() {
    let unforced = file().replace("force = 40\n", "");
    let close = json!({"arm": "right", "action": "close"});
    each(&["gripper", "parallel"], |kind| {
        let Some(scene) = scene_with(kind, domain(), &unforced) else {
            return;
        };
        let done = scene.answer(("gripper", close.clone()));
        let sent = scene.lines_with("\"grips\"");
        if *kind == "gripper" {
            assert!(
                done.to_string().contains("channels.arms.right_arm.gripper.force"),
                "{done:#}"
            );
            assert_eq!(sent, 0, "a command without a force was sent");
        } else {
            // It is left out, and the controller has its own.
            assert_eq!((&done["success"], sent), (&json!(true), 1), "{done:#}");
            assert!(scene.base.until("\"grips\"").contains("\"effort\": null"));
        }
    });
}
