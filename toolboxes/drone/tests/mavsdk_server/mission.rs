//! A flight from health to disarm, on the simulator through the real mavsdk_server.

use crate::rig::Rig;
use ovos_toolbox_sdk::prelude::*;

#[test]
fn finds_the_red_cup_and_comes_home() {
    let log = tempfile::tempdir().expect("a folder");
    let Some(rig) = Rig::open(json!({"run_log": log.path()})) else {
        return;
    };
    let health = rig.ok("vehicle_health", json!({}));
    assert_eq!(health["link_ok"], true, "{health}");
    rig.ok("arm", json!({}));
    rig.ok("takeoff", json!({"alt_m": 5.0}));
    let found = rig.ok("scan", json!({"object": "red cup"}));
    assert_eq!(found["found"], true, "{found}");
    let centred = rig.ok("orient_to_object", json!({"object": "red cup"}));
    assert_eq!(centred["centered"], true, "{centred}");
    let near = rig.ok(
        "safe_approach_until",
        json!({"object": "red cup", "stop_dist_m": 1.0}),
    );
    let dist = near["final_dist_m"].as_f64().expect("a distance");
    assert!((dist - 1.0).abs() < 0.3, "{near}");
    rig.ok("capture_photo", json!({}));
    rig.ok("rtl", json!({}));
    let state = rig.ok("vehicle_state", json!({}));
    assert_eq!(state["state"]["armed"], false, "{state}");
    rig.ok("disarm", json!({}));
    let [north, east, _] = rig.place();
    assert!(north.hypot(east) < 1.5, "landed at {north} {east}");
    assert!(rig.harness.close().is_clean());
    let file = std::fs::read_dir(log.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for tool in [
        "arm",
        "takeoff",
        "scan",
        "orient_to_object",
        "safe_approach_until",
        "capture_photo",
        "rtl",
    ] {
        for kind in ["call", "answer"] {
            assert!(
                lines
                    .iter()
                    .any(|line| line["kind"] == kind && line["tool"] == tool),
                "{kind} of {tool}"
            );
        }
    }
    assert!(lines.iter().any(|line| line["kind"] == "command"), "no command");
}
