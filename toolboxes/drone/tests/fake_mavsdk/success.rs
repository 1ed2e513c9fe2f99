//! A success is what the vehicle did: every tool, on a vehicle that falls silent, and on one whose answers are lost. On virtual
//! time.
use ovos_toolbox_sdk::serde_json::{Value, json};

use crate::paused::{Paused, airborne, fly};

/// Every tool, with arguments that a hovering vehicle carries out.
fn calls() -> [(&'static str, Value); 35] {
    let lat = 47.397_742;
    [
        ("arm", json!({})),
        ("disarm", json!({})),
        ("takeoff", json!({"alt_m": 3})),
        ("land", json!({})),
        ("rtl", json!({})),
        ("set_yaw", json!({"deg": 90})),
        ("turn_cw", json!({"deg": 20})),
        ("turn_ccw", json!({"deg": 20})),
        ("move_forward", json!({"cm": 50})),
        ("move_backward", json!({"cm": 50})),
        ("move_left", json!({"cm": 50})),
        ("move_right", json!({"cm": 50})),
        ("move_up", json!({"cm": 50})),
        ("move_down", json!({"cm": 50})),
        ("hold", json!({"ms": 100})),
        (
            "goto_gps",
            json!({"lat": lat + 0.0001, "lon": 8.545_594, "alt_m": 5}),
        ),
        ("goto_local", json!({"north_m": 2, "east_m": 0, "down_m": -5})),
        (
            "follow_path",
            json!({"waypoints": [{"lat": lat + 0.0001, "lon": 8.545_594, "alt_m": 6}]}),
        ),
        ("is_visible", json!({"object": "red cup"})),
        ("object_pose", json!({"object": "red cup"})),
        ("scene_free_ahead", json!({"range_m": 2})),
        ("count_objects", json!({"label": "red cup"})),
        (
            "safe_approach_until",
            json!({"object": "red cup", "stop_dist_m": 1}),
        ),
        ("scan", json!({"object": "red cup"})),
        ("orient_to_object", json!({"object": "red cup"})),
        ("track_object", json!({"object": "red cup", "horizon_s": 1})),
        ("replan", json!({"reason": "another way"})),
        ("vehicle_health", json!({})),
        ("battery_status", json!({})),
        ("vehicle_state", json!({})),
        ("log", json!({"level": "INFO", "text": "hello"})),
        ("capture_photo", json!({})),
        ("start_video", json!({})),
        ("stop_video", json!({})),
        ("emergency_brake", json!({})),
    ]
}

/// What asks no vehicle: the log, the plan, and the camera's scene, which comes from another program.
const NO_VEHICLE: [&str; 6] = [
    "log",
    "replan",
    "is_visible",
    "object_pose",
    "scene_free_ahead",
    "count_objects",
];

async fn none_succeeds(paused: &Paused, what: &str, on_ground: bool) {
    for (tool, args) in calls() {
        if NO_VEHICLE.contains(&tool) {
            continue;
        }
        let answer = paused.fleet.call(tool, args.clone()).await;
        if tool == "vehicle_state" {
            // What is known of the flight is told without a vehicle; where it is, is not.
            assert_eq!(answer["position"], json!(null), "{what}: {answer}");
            continue;
        }
        if tool == "emergency_brake" && on_ground {
            // It stood without power for its motors when it was heard last: nothing is stopped, and nothing is said to be.
            let nothing = answer["msg"].as_str().unwrap().starts_with("nothing to stop");
            assert!(nothing, "{what}: {answer}");
            continue;
        }
        assert_eq!(answer["ok"], false, "{what}: {tool} {args}: {answer}");
        let msg = answer["msg"].as_str().unwrap_or_default();
        assert!(msg.len() > 5, "{what}: {tool}: {answer}");
    }
}

#[test]
fn nothing_succeeds_in_the_air_on_a_vehicle_that_is_silent() {
    airborne(json!({}), 5.0, |paused| async move {
        paused.fake.lock().silent = true;
        paused.pass(12.0).await;
        none_succeeds(&paused, "silent in the air", false).await;
    });
}

#[test]
fn nothing_succeeds_on_the_ground_on_a_vehicle_that_is_silent() {
    fly(json!({}), crate::paused::empty(), |paused| async move {
        paused.fake.lock().silent = true;
        paused.pass(12.0).await;
        none_succeeds(&paused, "silent on the ground", true).await;
    });
}

/// The vehicle falls silent in the middle of each call that takes some time.
#[test]
fn no_call_succeeds_in_whose_middle_the_vehicle_falls_silent() {
    for (tool, args) in calls() {
        let lasting = [
            "set_yaw",
            "turn_cw",
            "turn_ccw",
            "move_left",
            "move_right",
            "move_up",
            "move_down",
            "goto_gps",
            "goto_local",
            "follow_path",
            "land",
            "rtl",
        ];
        if !lasting.contains(&tool) {
            continue;
        }
        airborne(json!({}), 5.0, |paused| async move {
            let start = paused.time();
            let (answer, _) = paused
                .in_the_middle(
                    tool,
                    args.clone(),
                    |sim| sim.vehicle.time() > start + 0.4,
                    |sim| sim.silent = true,
                )
                .await;
            assert_eq!(answer["ok"], false, "{tool} {args}: {answer}");
        });
    }
}
