//! Every tool, on the simulator with all its quirks, through the real mavsdk_server.

use crate::rig::Rig;
use ovos_toolbox_sdk::prelude::*;

fn near(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!(
        (found - expected).abs() <= tolerance,
        "{what}: {found}, expected {expected} ± {tolerance}"
    );
}

fn flat(a: [f64; 3], b: [f64; 3]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

#[test]
fn lifecycle() {
    let Some(rig) = Rig::open(json!({})) else {
        return;
    };
    // PX4 acknowledges the take-off of a disarmed vehicle and does nothing: it is refused before it is sent.
    rig.refused("takeoff", json!({"alt_m": 5}), "not_armed");
    rig.refused("move_up", json!({"cm": 50}), "not_armed");
    rig.refused("rtl", json!({}), "not_in_air");
    rig.ok("disarm", json!({}));
    rig.ok("arm", json!({}));
    assert_eq!(rig.truth()["armed"], true);
    rig.ok("disarm", json!({}));
    assert_eq!(rig.truth()["armed"], false);
    rig.ok("arm", json!({}));
    let risen = rig.ok("takeoff", json!({"alt_m": 0.2}));
    assert_eq!(
        risen["clamped"]["alt_m"],
        json!({"asked": 0.2, "used": 1.0}),
        "{risen}"
    );
    rig.refused("takeoff", json!({"alt_m": 5}), "in_air");
    rig.refused("disarm", json!({}), "in_air");
    rig.refused("arm", json!({}), "in_air");
    rig.ok("move_up", json!({"cm": 300}));
    let landed = rig.ok("land", json!({}));
    assert_eq!(
        (&landed["state"]["armed"], &landed["state"]["in_air"]),
        (&json!(false), &json!(false)),
        "{landed}"
    );
    rig.ok("land", json!({}));
    let state = rig.ok("vehicle_state", json!({}));
    assert_eq!(state["limits"]["max_forward_m"], 5.0);
    assert!(rig.harness.close().is_clean());
}

#[test]
fn small_moves_are_closed_loop() {
    let Some(rig) = Rig::airborne(
        5.0,
        json!({"flight_limits": {"max_forward_m": 9.0, "max_rotation_deg": 1000},
               "simulator": {"quirks": "all,-hover_wanders,-ground_drifts"}}),
    ) else {
        return;
    };
    rig.ok("set_yaw", json!({"deg": 0}));
    near(rig.truth()["yaw_deg"].as_f64().unwrap(), 0.0, 4.0, "north");
    // The request, and the resulting displacement in metres north, east, down.
    for (tool, cm, moved) in [
        ("move_forward", 300, [3.0, 0.0, 0.0]),
        ("move_left", 150, [0.0, -1.5, 0.0]),
        ("move_right", 300, [0.0, 3.0, 0.0]),
        ("move_up", 200, [0.0, 0.0, -2.0]),
        ("move_down", 100, [0.0, 0.0, 1.0]),
        ("move_forward", 10, [0.1, 0.0, 0.0]),
    ] {
        let before = rig.place();
        let answer = rig.ok(tool, json!({"cm": cm}));
        let after = rig.place();
        for axis in 0..3 {
            near(
                after[axis] - before[axis],
                moved[axis],
                0.3,
                &format!("{tool} {cm}, axis {axis}: {answer}"),
            );
        }
    }
    for (tool, deg, heading) in [
        ("turn_cw", 90, 90.0),
        ("turn_ccw", 45, 45.0),
        ("turn_cw", 1, 46.0),
    ] {
        rig.ok(tool, json!({"deg": deg}));
        near(rig.truth()["yaw_deg"].as_f64().unwrap(), heading, 4.5, tool);
    }
    let far = rig.ok("move_up", json!({"cm": 900}));
    assert_eq!(far["clamped"]["cm"], json!({"asked": 900.0, "used": 300.0}));
    let state = rig.ok("vehicle_state", json!({}));
    near(
        state["forward_accum_m"].as_f64().unwrap(),
        3.1,
        0.5,
        "forward budget",
    );
    rig.ok("replan", json!({"reason": "nothing found"}));
    assert_eq!(rig.ok("vehicle_state", json!({}))["forward_accum_m"], 0.0);
    let before = rig.place();
    rig.ok("hold", json!({"ms": 2000}));
    assert!(flat(before, rig.place()) < 0.5);
    assert_eq!(rig.truth()["mode"], "hold");
    assert!(
        !rig.harness
            .events()
            .iter()
            .filter(|event| event.kind == "drone_state")
            .collect::<Vec<_>>()
            .is_empty()
    );
    assert!(
        !rig.harness.events().iter().any(|event| event.kind == "latched"),
        "{:?}",
        rig.harness.events()
    );
}

#[test]
fn flights_to_places() {
    let Some(rig) = Rig::airborne(
        5.0,
        json!({"simulator": {"quirks": "all,-hover_wanders,-ground_drifts"}}),
    ) else {
        return;
    };
    rig.ok(
        "goto_local",
        json!({"north_m": 6, "east_m": -4, "down_m": -7, "yaw_deg": 90}),
    );
    let [north, east, down] = rig.place();
    near(north, 6.0, 0.4, "north");
    near(east, -4.0, 0.4, "east");
    near(down, -7.0, 0.4, "down");
    // Ten metres north of home, 8 m above home (not above sea level).
    let home = [47.397_742, 8.545_594];
    let lat = |north: f64| home[0] + (north / 6_371_000.0_f64).to_degrees();
    rig.ok("goto_gps", json!({"lat": lat(10.0), "lon": home[1], "alt_m": 8}));
    let [north, east, down] = rig.place();
    near(north, 10.0, 1.2, "north");
    near(east, 0.0, 1.2, "east");
    near(down, -8.0, 1.2, "down");
    // PX4 acknowledges a start that comes too soon and refuses it; the toolbox verifies and repeats it.
    let path = json!({"waypoints": [
        {"lat": lat(10.0), "lon": home[1], "alt_m": 6},
        {"lat": lat(20.0), "lon": home[1], "alt_m": 6},
        {"lat": lat(5.0), "lon": home[1], "alt_m": 6},
    ], "cruise_mps": 30});
    let flown = rig.ok("follow_path", path);
    assert_eq!(flown["clamped"]["cruise_mps"]["used"], 8.0, "{flown}");
    near(rig.place()[0], 5.0, 1.8, "the last waypoint");
    for (args, code) in [
        (json!({"waypoints": []}), "out_of_range"),
        (
            json!({"waypoints": vec![json!({"lat": lat(8.0), "lon": home[1], "alt_m": 6}); 26]}),
            "out_of_range",
        ),
        (
            json!({"waypoints": vec![json!({"lat": lat(8.0), "lon": home[1], "alt_m": 6}); 2]}),
            "out_of_range",
        ),
        (
            json!({"waypoints": [{"lat": 0, "lon": 0, "alt_m": 6}]}),
            "out_of_range",
        ),
        (
            json!({"waypoints": [{"lat": lat(8.0), "lon": home[1], "alt_m": 60}]}),
            "altitude_ceiling",
        ),
        (
            json!({"waypoints": [{"lat": lat(150.0), "lon": home[1], "alt_m": 6}]}),
            "fence",
        ),
        (
            json!({"waypoints": [{"lat": 48.0, "lon": home[1], "alt_m": 6}]}),
            "too_far",
        ),
    ] {
        rig.refused("follow_path", args, code);
    }
    let back = rig.ok("rtl", json!({}));
    assert_eq!(back["state"]["armed"], false, "{back}");
    let [north, east, _] = rig.place();
    assert!(north.hypot(east) < 1.5);
    let words = rig.harness.events().iter().any(|event| event.kind == "latched");
    assert!(!words, "{:?}", rig.harness.events());
}

#[test]
fn eyes_and_policies() {
    // A drifting vehicle sees the cup elsewhere in the next picture: approach.rs and random_missions.rs cover that.
    let config = json!({"simulator": {"quirks": "all,-hover_wanders,-ground_drifts"}});
    let Some(rig) = Rig::airborne(5.0, config) else {
        return;
    };
    rig.ok("set_yaw", json!({"deg": 0}));
    // Two chairs to the north-west, a person to the north-north-east.
    let person = rig.ok("is_visible", json!({"object": " Person "}));
    assert_eq!(
        person["visible"],
        rig.ok("count_objects", json!({"label": "person"}))["count"] == 1,
        "{person}"
    );
    assert_eq!(
        rig.ok("is_visible", json!({"object": "unicorn"}))["visible"],
        false
    );
    rig.refused("object_pose", json!({"object": "unicorn"}), "not_found");
    rig.refused(
        "is_visible",
        json!({"object": "person", "conf_min": 2.0}),
        "out_of_range",
    );
    let free = rig.ok("scene_free_ahead", json!({"range_m": 100}));
    assert_eq!(free["clamped"]["range_m"]["used"], 10.0, "{free}");
    // There is no such object: one full turn and no more.
    let lost = rig.refused("scan", json!({"object": "unicorn", "step_deg": 45}), "not_found");
    assert_eq!(
        (&lost["found"], &lost["steps"]),
        (&json!(false), &json!(8)),
        "{lost}"
    );
    rig.refused("turn_cw", json!({"deg": 45}), "rotation_limit");
    let plan = rig.ok("replan", json!({"reason": "nothing found"}));
    assert!(
        plan["plan_id"].as_str().is_some_and(|id| !id.is_empty()),
        "{plan}"
    );
    rig.ok("scan", json!({"object": "red cup", "step_deg": 45}));
    rig.ok(
        "orient_to_object",
        json!({"object": "red cup", "center_band": {"min": 0.45, "max": 0.55}}),
    );
    let pose = rig.ok("object_pose", json!({"object": "red cup"}));
    near(pose["x"].as_f64().unwrap(), 0.5, 0.06, "in the middle");
    assert!(pose["dist_m"].as_f64().unwrap() > 1.0, "{pose}");
    rig.refused(
        "orient_to_object",
        json!({"object": "red cup", "center_band": {"min": 0.6, "max": 0.4}}),
        "out_of_range",
    );
    rig.refused(
        "safe_approach_until",
        json!({"object": "red cup", "stop_dist_m": 0.1}),
        "out_of_range",
    );
    let before = rig.place();
    rig.ok("track_object", json!({"object": "red cup", "horizon_s": 3}));
    assert!(flat(before, rig.place()) < 1.0);
    // A wall appears in the path.
    let truth = rig.truth();
    let yaw = truth["yaw_deg"].as_f64().unwrap().to_radians();
    let [north, east, _] = rig.place();
    let wall = json!({"cmd": "add_thing", "label": "", "north_m": north + 1.2 * yaw.cos(), "east_m": east + 1.2 * yaw.sin(),
        "up_m": 4.0, "radius_m": 0.2, "height_m": 8.0, "solid": true});
    assert_eq!(rig.sim(wall.clone())["ok"], true, "{wall}");
    rig.until("the wall is seen", |rig| {
        rig.call("scene_free_ahead", json!({"range_m": 2}))["free"] == false
    });
    rig.refused("move_forward", json!({"cm": 200}), "blocked");
    rig.ok("move_right", json!({"cm": 20}));
    // Stale vision data shows nothing, and the way ahead counts as blocked.
    rig.sim(json!({"cmd": "freeze_scene", "frozen": true}));
    rig.until("the picture is old", |rig| {
        rig.call("is_visible", json!({"object": "red cup"}))["code"] == "vision_unavailable"
    });
    for tool in ["scan", "orient_to_object"] {
        rig.refused(tool, json!({"object": "red cup"}), "vision_unavailable");
    }
    rig.refused("count_objects", json!({"label": "chair"}), "vision_unavailable");
}

#[test]
fn telemetry_camera_and_log() {
    let Some(rig) = Rig::open(json!({})) else {
        return;
    };
    rig.sim(json!({"cmd": "set_battery", "pct": 62}));
    rig.until("62 %", |rig| {
        rig.call("battery_status", json!({}))["pct"]
            .as_f64()
            .is_some_and(|pct| (pct - 62.0).abs() < 2.0)
    });
    rig.sim(json!({"cmd": "set_health", "gps": false, "mag": false}));
    rig.until("no GPS", |rig| {
        let health = rig.call("vehicle_health", json!({}));
        health["gps_ok"] == false && health["magnetometer_ok"] == false && health["imu_ok"] == true
    });
    let why = rig.refused("arm", json!({}), "preflight");
    assert!(why["msg"].as_str().unwrap().contains("magnetometer"), "{why}");
    rig.sim(json!({"cmd": "set_health"}));
    rig.until("well again", |rig| {
        rig.call("vehicle_health", json!({}))["armable"] == true
    });
    rig.ok("capture_photo", json!({}));
    assert_eq!(rig.truth()["photos"], 1);
    rig.ok("start_video", json!({}));
    assert_eq!(rig.truth()["recording"], true);
    rig.ok("stop_video", json!({}));
    assert_eq!(rig.truth()["recording"], false);
    rig.ok("log", json!({"level": "WARN", "text": "a\nb"}));
    rig.refused("log", json!({"level": "LOUD", "text": "a"}), "bad_args");
    rig.refused("log", json!({"level": "INFO", "text": " \n"}), "out_of_range");
    rig.refused("replan", json!({"reason": ""}), "out_of_range");
    rig.refused("vehicle_health", json!({"vehicle": "other"}), "bad_args");
    rig.refused("move_up", json!({"cm": "far"}), "bad_args");
    rig.refused("move_up", json!({"cm": 10, "fast": true}), "bad_args");
    rig.refused("move_up", json!({"cm": 10.5}), "bad_args");
}
