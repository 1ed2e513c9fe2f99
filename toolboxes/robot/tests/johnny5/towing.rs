//! A cart slows the base down once, and it goes forwards and backwards only.

use feetech_sim::register as r;
use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::json;

use crate::servos::Body;
use crate::words;

/// Steps per second of a back wheel, which stands 60 degrees off the way, at metres per second.
fn steps(speed: f64) -> f64 {
    speed * 60f64.to_radians().sin() / 0.05 / std::f64::consts::TAU * 4096.0
}

#[test]
fn a_cart_slows_the_base_down_once() {
    let body = Body::new();
    // The hitch closes on the cart.
    body.left
        .servo(11, |servo| servo.block(f64::NEG_INFINITY, 1900.0))
        .unwrap();
    let robots = json!({"five": {"adapter": "johnny5", "johnny5": body.section()}});
    let harness = Harness::open::<Robots>(json!({ "robots": robots })).unwrap();
    let fastest = |asked: f64| {
        let _ = body.left.take_frames();
        let args = json!({"direction": "forward", "speed": asked, "duration": 0.3});
        let walked = harness.invoke("walk", args).unwrap();
        assert_eq!(walked["success"], true, "{walked:#}");
        let speeds = words(&body.left.take_frames(), 8, r::GOAL_SPEED);
        f64::from(speeds.into_iter().map(i32::abs).max().unwrap())
    };
    let check = |asked: f64, expected: f64| {
        let speed = fastest(asked);
        assert!(
            (speed - steps(expected)).abs() < 2.0,
            "{asked} m/s: {speed} steps/s, expected {}",
            steps(expected)
        );
    };
    check(0.1, 0.1);
    check(0.2, 0.2);
    let attached = harness.invoke("tow_cart", json!({})).unwrap();
    assert_eq!(attached["success"], true, "{attached:#}");
    // With a cart 0.35 of 0.26 m/s is the largest speed, which slows what was asked for down to it and no further.
    check(0.1, 0.091);
    check(1.0, 0.091);
    let sideways = harness.invoke("walk", json!({"direction": "left"})).unwrap();
    assert_eq!(sideways["message"], "five cannot go sideways with a cart");
    let status = harness.invoke("tow_cart", json!({"action": "status"})).unwrap();
    assert_eq!(status["data"]["towing"], true, "{status:#}");
    let detached = harness.invoke("tow_cart", json!({"action": "detach"})).unwrap();
    assert_eq!(detached["success"], true, "{detached:#}");
    check(0.2, 0.2);
}
