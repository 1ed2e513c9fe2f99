//! PX4's surprising behaviour: a caller sees the same result with each quirk on and with none.

use crate::rig::Rig;
use ovos_toolbox_sdk::prelude::*;

fn lat(north: f64) -> f64 {
    47.397_742 + (north / 6_371_000.0).to_degrees()
}

/// The same flight with any set of quirks.
fn fly(quirks: &str) {
    let Some(rig) = Rig::open(json!({"simulator": {"quirks": quirks}, "flight_limits": {"max_alt_m": 12.0}}))
    else {
        return;
    };
    // takeoff_while_disarmed: PX4 would acknowledge it.
    rig.refused("takeoff", json!({"alt_m": 4}), "not_armed");
    rig.ok("arm", json!({}));
    // takeoff_settles_low: 0.4 m; hover_wanders: half a metre; slow_streams.
    let risen = rig.ok("takeoff", json!({"alt_m": 4}));
    assert!(
        risen["state"]["alt_m"].as_f64().unwrap() >= 3.1,
        "{quirks}: {risen}"
    );
    // disarm_in_air_denied: without it the vehicle would fall.
    rig.refused("disarm", json!({}), "in_air");
    // sluggish_velocity: closed loop.
    let before = rig.place()[2];
    rig.ok("move_up", json!({"cm": 100}));
    assert!((before - rig.place()[2] - 1.0).abs() < 0.3, "{quirks}");
    // mission_needs_settling.
    let path = json!([{"lat": lat(6.0), "lon": 8.545_594, "alt_m": 5}, {"lat": lat(9.0), "lon": 8.545_594, "alt_m": 5}]);
    rig.ok("follow_path", json!({"waypoints": path}));
    assert!((rig.place()[0] - 9.0).abs() < 1.8, "{quirks}: {:?}", rig.place());
    // goto_outside_fence_acked: PX4 would acknowledge and ignore it.
    rig.refused(
        "goto_gps",
        json!({"lat": lat(300.0), "lon": 8.545_594, "alt_m": 5}),
        "fence",
    );
    // return_climbs: not above the ceiling.
    rig.ok("rtl", json!({}));
    let excursions = rig.truth()["excursions"].clone();
    assert!(
        excursions["up_m"].as_f64().unwrap() <= 12.0,
        "{quirks}: {excursions}"
    );
    assert_eq!(rig.truth()["armed"], false);
}

#[test]
fn a_flight_is_the_same_with_all_quirks_and_with_none() {
    fly("all");
    fly("none");
}

/// Quirks, and the code with which a flight beyond the vehicle's own fence ends.
#[test]
fn a_goto_that_the_vehicle_acknowledges_and_ignores_is_not_ok() {
    for (quirks, code) in [("all", "not_reached"), ("none", "denied")] {
        let Some(rig) = Rig::airborne(5.0, json!({"simulator": {"quirks": quirks}})) else {
            return;
        };
        // Narrower than ours, so that only the vehicle can refuse.
        assert_eq!(
            rig.sim(json!({"cmd": "set_fence", "radius_m": 20}))["ack"],
            "accepted"
        );
        let beyond = json!({"lat": lat(40.0), "lon": 8.545_594, "alt_m": 5});
        let answer = rig.refused("goto_gps", beyond, code);
        assert!(
            answer["msg"]
                .as_str()
                .unwrap()
                .contains("Reposition is outside geofence"),
            "{answer}\n{}",
            rig.story()
        );
        assert!(rig.place()[0].abs() < 1.0, "{quirks}: {:?}", rig.place());
        rig.ok("goto_gps", json!({"lat": lat(8.0), "lon": 8.545_594, "alt_m": 5}));
    }
}

#[test]
fn a_camera_that_acknowledges_and_does_nothing_is_not_believed() {
    let Some(rig) = Rig::open(json!({})) else {
        return;
    };
    rig.ok("start_video", json!({}));
    rig.sim(json!({"cmd": "set_camera", "obeys": false}));
    for (tool, expected) in [
        ("capture_photo", "reported no photo"),
        ("stop_video", "it is still recording"),
    ] {
        let answer = rig.refused(tool, json!({}), "unconfirmed");
        assert!(answer["msg"].as_str().unwrap().contains(expected), "{answer}");
    }
    rig.sim(json!({"cmd": "set_camera", "obeys": true}));
    rig.ok("stop_video", json!({}));
    assert_eq!(
        (&rig.truth()["recording"], &rig.truth()["photos"]),
        (&json!(false), &json!(0))
    );
}

#[test]
fn a_fence_that_does_not_contain_home_grounds_the_vehicle() {
    // PX4 acknowledges such a fence and then enforces none.
    let corner = |north: f64, east: f64| json!([lat(north), 8.545_594 + east / 75_000.0]);
    let fence = json!({"polygon": [corner(50.0, -20.0), corner(50.0, 20.0), corner(90.0, 20.0), corner(90.0, -20.0)]});
    let Some(rig) = Rig::open(json!({"fence": fence})) else {
        return;
    };
    rig.ok("arm", json!({}));
    rig.refused("takeoff", json!({"alt_m": 4}), "fence");
    assert_eq!(rig.truth()["landed"], "on_ground");
}

/// Quirks, and why a vehicle with a broken compass does not arm, in `vehicle_health` and in the refusal.
#[test]
fn why_it_will_not_arm_is_read_from_the_vehicles_events() {
    let compass = "No valid data from Compass 0";
    for (quirks, why, expected) in [
        ("all", compass, "; in mode Hold: No valid data from Compass 0"),
        (
            "all,no_event_metadata",
            "not well: magnetometer",
            "; the mode is HOLD",
        ),
    ] {
        let Some(rig) = Rig::open(json!({"simulator": {"quirks": quirks}})) else {
            return;
        };
        rig.sim(json!({"cmd": "set_health", "mag": false}));
        let said_to = |rig: &Rig, arms: bool, why: Value| {
            let health = rig.call("vehicle_health", json!({}));
            health["armable"] == arms && health["why_not_armable"][0] == why
        };
        rig.until(why, |rig| said_to(rig, false, json!(why)));
        let refused = rig.refused("arm", json!({}), "preflight");
        assert!(
            refused["msg"].as_str().unwrap().contains(expected),
            "{quirks}: {refused}"
        );
        rig.sim(json!({"cmd": "set_health"}));
        rig.until("nothing", |rig| said_to(rig, true, Value::Null));
        rig.ok("arm", json!({}));
    }
}

#[test]
fn arming_right_after_the_boot_says_why_not_or_works() {
    let Some((config, control)) = Rig::config(json!({"simulator": {"speed": 1.0}})) else {
        return;
    };
    let harness = ovos_toolbox_sdk::testing::Harness::open::<drone::Drone>(config).expect("opens");
    let rig = Rig {
        harness: harness.with_deadline(std::time::Duration::from_secs(60)),
        control,
    };
    // The call waits for the vehicle, and repeats when PX4 denies at first.
    let first = rig.call("arm", json!({}));
    let message = first["msg"].as_str().unwrap();
    assert!(
        first["ok"] == true || message.contains("preflight") || message.contains("denied"),
        "{first}"
    );
    rig.until("armed", |rig| rig.call("arm", json!({}))["ok"] == true);
    assert_eq!(rig.truth()["armed"], true);
}
