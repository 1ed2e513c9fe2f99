//! Things that an SO-101 goes to, holds, and finds again.

use std::time::Duration;

use ovos_toolbox_sdk::testing::Harness;
use serde_json::{Value, json};

use crate::points::{Arm, CLOSE, LEAST, MIDDLE, apart, to};
use crate::reach::tip;

/// Something in the hand's way when it closes, 30 degrees wide.
pub(crate) fn put(arm: &Arm, there: bool) {
    let closed = 2048.0 + (30.0 - MIDDLE[5]) * 4096.0 / 360.0;
    let low = if there { closed } else { f64::NEG_INFINITY };
    arm.line
        .servo(6, |servo| servo.block(low, f64::INFINITY))
        .unwrap();
}

/// A call while a handler of recognition questions answers on the bus.
pub(crate) fn answered(robot: &Harness, tool: &str, args: Value) -> Value {
    std::thread::scope(|scope| {
        let call = scope.spawn(|| robot.invoke(tool, args).unwrap());
        while !call.is_finished() {
            robot.deliver();
            std::thread::park_timeout(Duration::from_millis(3));
        }
        call.join().unwrap()
    })
}

#[test]
fn a_hand_goes_where_the_thing_is_and_holds_it_or_says_that_it_does_not() {
    let arm = Arm::new();
    let robot = arm.open();
    robot.respond("ovos.robot.recognise", |question| {
        let args = &question["args"];
        match (question["tool"].as_str(), args["name"].as_str()) {
            (Some("locate"), Some("screw")) => {
                assert_eq!(args["frame"], "right_arm", "{question:#}");
                Some(Ok(
                    json!({"position": {"frame": "right_arm", "x": 0.22, "y": 0.1, "z": 0.03}}),
                ))
            }
            // In a frame that is not the arm's.
            (Some("locate"), Some("nut")) => Some(Ok(
                json!({"position": {"frame": "map", "x": 0.22, "y": 0.1, "z": 0.03}}),
            )),
            // Where it was, which is no answer.
            (Some("locate"), Some("ghost")) => Some(Ok(json!({
                "success": false, "position": {"frame": "right_arm", "x": 0.22, "y": 0.1, "z": 0.03}
            }))),
            _ => Some(Ok(json!({"success": false, "message": "not seen"}))),
        }
    });
    for name in ["unicorn", "nut", "ghost"] {
        let before = arm.angles();
        let unknown = answered(&robot, "pick_object", json!({"object": name}));
        assert_eq!(unknown["success"], false, "{unknown:#}");
        let message = unknown["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("does not know where {name} is")),
            "{message}"
        );
        assert_eq!(arm.angles(), before, "it moved");
    }
    let cup = json!({"object": "cup", "x": 0.24, "y": -0.06, "z": 0.04});
    let air = answered(&robot, "pick_object", cup.clone());
    assert_eq!(air["success"], false, "{air:#}");
    assert!(
        air["message"].as_str().unwrap().contains("closed on nothing"),
        "{air:#}"
    );
    let nothing = answered(
        &robot,
        "place_object",
        json!({"location": "shelf", "x": 0.2, "y": 0.1, "z": 0.1}),
    );
    assert!(
        nothing["message"].as_str().unwrap().contains("holds nothing"),
        "{nothing:#}"
    );

    for (object, place, at) in [
        (
            cup,
            json!({"location": "left", "x": 0.2, "y": 0.12, "z": 0.04}),
            [0.24, -0.06],
        ),
        (
            json!({"object": "screw"}),
            json!({"location": "left", "x": 0.2, "y": -0.12, "z": 0.0}),
            [0.22, 0.1],
        ),
    ] {
        put(&arm, true);
        let (picked, lowest) = arm.lowest(|| answered(&robot, "pick_object", object));
        assert_eq!(picked["success"], true, "{picked:#}");
        assert_eq!(picked["data"]["results"]["grasp"]["holding"], true, "{picked:#}");
        let lifted = tip(&arm.angles());
        // Above where it lay: the fixed finger is beside the thing.
        let beside = (lifted[0] - at[0]).hypot(lifted[1] - at[1]);
        assert!(beside < 0.04 && lifted[2] > 0.07, "{at:?}: {lifted:?}");
        assert!(lowest >= LEAST, "{lowest}");
        let (placed, lowest) = arm.lowest(|| answered(&robot, "place_object", place));
        assert_eq!(placed["success"], true, "{placed:#}");
        assert!(lowest >= LEAST, "{lowest}");
        put(&arm, false);
    }
}

#[test]
fn what_a_hand_has_shown_it_finds_again() {
    let arm = Arm::new();
    let robot = arm.open();
    let there = [0.25, 0.08, 0.06];
    let call = |robot: &Harness, tool: &str, args: Value| {
        let done = robot.invoke(tool, args).unwrap();
        assert_eq!(done["success"], true, "{tool}: {done:#}");
        done
    };
    call(&robot, "move_arm", to(there));
    let kept = call(&robot, "remember_place", json!({"place": "Tray"}));
    assert_eq!(kept["data"]["position"]["arm"], "right_arm", "{kept:#}");
    let showed = tip(&arm.angles());
    call(&robot, "move_arm", json!({"arm": "right", "position": "home"}));
    drop(robot.close());
    // Beyond the end of the toolbox.
    let robot = arm.open();
    let places = call(&robot, "list_places", json!({}));
    assert_eq!(places["data"]["places"][0]["reachable"], true, "{places:#}");
    put(&arm, true);
    call(&robot, "pick_object", json!({"object": "tray"}));
    let lifted = tip(&arm.angles());
    assert!(
        (lifted[0] - showed[0]).hypot(lifted[1] - showed[1]) < 0.03,
        "{lifted:?} {showed:?}"
    );
    call(&robot, "move_arm", json!({"arm": "right", "position": "TRAY"}));
    assert!(
        apart(tip(&arm.angles()), showed) < 2.0 * CLOSE,
        "{:?} {showed:?}",
        tip(&arm.angles())
    );
    call(&robot, "forget_place", json!({"place": "tray"}));
}
