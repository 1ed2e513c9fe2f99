//! Every motion tool at the fence, at the altitude limits, with a low battery and with an untrusted vehicle.

use crate::rig::Rig;
use ovos_toolbox_sdk::prelude::*;

fn lat(north: f64) -> f64 {
    47.397_742 + (north / 6_371_000.0).to_degrees()
}

#[test]
fn no_moving_tool_leaves_the_fence_or_the_band() {
    let config = json!({"fence": {"radius_m": 12.0}, "flight_limits": {"max_alt_m": 12.0, "max_forward_m": 100.0,
        "max_rotation_deg": 3600, "max_replans": 1000},
        "simulator": {"quirks": "all,-hover_wanders,-ground_drifts"}});
    let Some(rig) = Rig::airborne(5.0, config) else {
        return;
    };
    rig.sim(json!({"cmd": "clear_world"}));
    rig.sim(json!({"cmd": "set_drain", "pct_per_s": 0}));
    rig.sim(json!({"cmd": "reset_excursions"}));
    let lon = 8.545_594;
    rig.ok("set_yaw", json!({"deg": 0}));
    rig.refused(
        "goto_gps",
        json!({"lat": lat(50.0), "lon": lon, "alt_m": 5}),
        "fence",
    );
    rig.refused(
        "goto_gps",
        json!({"lat": lat(10.0), "lon": lon, "alt_m": 5}),
        "fence",
    );
    rig.refused(
        "goto_gps",
        json!({"lat": 0, "lon": 0, "alt_m": 5}),
        "out_of_range",
    );
    rig.refused(
        "goto_gps",
        json!({"lat": 95, "lon": lon, "alt_m": 5}),
        "out_of_range",
    );
    rig.refused(
        "goto_local",
        json!({"north_m": 9.5, "east_m": 0, "down_m": -5}),
        "fence",
    );
    rig.refused(
        "goto_local",
        json!({"north_m": 500, "east_m": 0, "down_m": -5}),
        "too_far",
    );
    rig.refused(
        "goto_local",
        json!({"north_m": 0, "east_m": 0, "down_m": -25}),
        "altitude_ceiling",
    );
    let out = json!([{"lat": lat(5.0), "lon": lon, "alt_m": 5}, {"lat": lat(20.0), "lon": lon, "alt_m": 5}]);
    rig.refused("follow_path", json!({"waypoints": out}), "fence");
    let high = json!({"lat": lat(2.0), "lon": lon, "alt_m": 500});
    rig.refused("goto_gps", high, "altitude_ceiling");
    // The ceiling is 12 m, and PX4's own climb needs 2.5 m to stop.
    rig.ok("goto_gps", json!({"lat": lat(2.0), "lon": lon, "alt_m": 9.5}));
    rig.refused("move_up", json!({"cm": 300}), "altitude_ceiling");
    // Small moves in one direction until the fence refuses one.
    for (tool, to) in [("move_forward", 0), ("move_left", 0), ("move_right", 0)] {
        rig.ok(
            "goto_local",
            json!({"north_m": 0, "east_m": 0, "down_m": -6, "yaw_deg": to}),
        );
        let mut refused = None;
        for _ in 0..6 {
            let answer = rig.call(tool, json!({"cm": 300}));
            if answer["ok"] != true {
                refused = Some(answer);
                break;
            }
        }
        let refused = refused.unwrap_or_else(|| panic!("{tool} was never refused"));
        assert_eq!(refused["code"], "fence", "{tool}: {refused}");
    }
    rig.ok("goto_local", json!({"north_m": 0, "east_m": 0, "down_m": -3}));
    let mut last = json!({});
    for _ in 0..5 {
        last = rig.call("move_down", json!({"cm": 100}));
    }
    assert_eq!(last["code"], "altitude_floor", "{last}");
    let excursions = rig.truth()["excursions"].clone();
    assert!(
        excursions["fence_depth_m"].as_f64().unwrap() >= 3.0,
        "{excursions}"
    );
    assert!(excursions["up_m"].as_f64().unwrap() <= 12.0, "{excursions}");
    assert!(excursions["lowest_m"].as_f64().unwrap() >= 0.5, "{excursions}");
}

#[test]
fn takeoffs_stay_below_the_ceiling() {
    let Some(rig) = Rig::open(json!({"flight_limits": {"max_alt_m": 8.0}})) else {
        return;
    };
    rig.ok("arm", json!({}));
    rig.refused("takeoff", json!({"alt_m": 20}), "altitude_ceiling");
    assert_eq!(rig.truth()["landed"], "on_ground");
}

#[test]
fn an_empty_battery_ends_motion_and_not_the_way_home() {
    // Only SIH charges its battery where it lands.
    let Some(rig) = Rig::airborne(5.0, json!({"simulator": {"quirks": "all,-disarm_charges"}})) else {
        return;
    };
    rig.sim(json!({"cmd": "set_drain", "pct_per_s": 0}));
    let run = rig
        .harness
        .start("goto_local", json!({"north_m": 40, "east_m": 0, "down_m": -6}))
        .unwrap();
    rig.until("under way", |rig| rig.place()[0] > 2.0);
    rig.sim(json!({"cmd": "set_battery", "pct": 22}));
    let ended = run.wait().result().unwrap();
    assert_eq!(ended["code"], "battery_low", "{ended}");
    rig.refused("move_up", json!({"cm": 50}), "battery_low");
    rig.ok("land", json!({}));
    rig.refused("arm", json!({}), "battery_low");
}

#[test]
fn a_vehicle_that_was_not_recognised_is_not_commanded() {
    // A simulator that reports another id than the one it was started with.
    let Some((config, control)) = Rig::config(json!({})) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("px4-sim");
    let script = format!(
        "#!/bin/sh\nlast=\nfor a; do shift; [ \"$last\" = --nonce ] && set -- \"$@\" 00000000deadbeef || set -- \"$@\" \"$a\"; last=$a; done\nexec {} \"$@\"\n",
        crate::rig::px4_sim().display()
    );
    std::fs::write(&other, script).unwrap();
    std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let config = crate::rig::over(config, json!({"px4_sim": other}));
    let harness = ovos_toolbox_sdk::testing::Harness::open::<drone::Drone>(config);
    let harness = harness.unwrap().with_deadline(std::time::Duration::from_secs(60));
    let rig = Rig { harness, control };
    for tool in ["arm", "land", "capture_photo", "disarm"] {
        let answer = rig.call(tool, json!({}));
        assert_eq!(
            (&answer["ok"], &answer["code"]),
            (&json!(false), &json!("not_trusted")),
            "{tool}: {answer}"
        );
    }
    rig.harness.halt(&["all"], true).unwrap();
    assert_eq!(rig.truth()["armed"], false);
}

#[test]
fn a_lone_vehicle_speaks_for_the_whole_toolbox() {
    for ids in [vec!["one"], vec!["one", "two"]] {
        let vehicle = |(number, id): (usize, &&str)| json!({"id": id, "url": format!("udpin://127.0.0.1:{}", 14_540 + number)});
        let vehicles: Vec<Value> = ids.iter().enumerate().map(vehicle).collect();
        let config =
            json!({"backend": "sitl", "mavsdk_server": "/nowhere/mavsdk_server", "vehicles": vehicles});
        let harness =
            ovos_toolbox_sdk::testing::Harness::open::<drone::Drone>(config).expect("opens all the same");
        let event = harness.wait_event("backend").data.unwrap();
        let unit = (ids.len() > 1).then(|| event["vehicle"].clone());
        assert_eq!(event.get("unit"), unit.as_ref(), "{event}");
    }
}

#[test]
fn without_the_programs_the_tools_say_how_to_get_them() {
    let config = json!({"mavsdk_server": "/nowhere/mavsdk_server", "px4_sim": "/nowhere/px4-sim"});
    let harness =
        ovos_toolbox_sdk::testing::Harness::open::<drone::Drone>(config).expect("opens all the same");
    assert_eq!(harness.tools().len(), 35);
    let _ = harness.wait_event("backend");
    let health = harness.call("vehicle_health", json!({})).unwrap();
    assert_eq!(
        (&health["ok"], &health["link_ok"]),
        (&json!(false), &json!(false)),
        "{health}"
    );
    let answer = harness.call("arm", json!({})).unwrap();
    assert_eq!(answer["code"], "not_installed", "{answer}");
    assert!(
        answer["msg"].as_str().unwrap().contains("/nowhere/px4-sim"),
        "{answer}"
    );
    harness.halt(&["all"], true).expect("nothing to stop");
    assert!(harness.close().is_clean());
}

#[test]
fn configurations_that_cannot_be_are_refused_by_name() {
    for (config, named) in [
        (
            json!({"backend": "vehicle", "vehicles": [{"id": "a", "url": "udpin://127.0.0.1:1"}]}),
            "allow_real_vehicle",
        ),
        (json!({"backend": "sitl"}), "url"),
        (json!({"vehicles": [{"id": "all"}]}), "id"),
        (json!({"vehicles": [{"id": "a"}, {"id": "a"}]}), "two"),
        (json!({"simulator": {"speed": 1000}}), "simulator.speed"),
        (json!({"fence": {"radius_m": 1}}), "fence.radius_m"),
        (
            json!({"flight_limits": {"max_alt_m": 1000}}),
            "flight_limits.max_alt_m",
        ),
    ] {
        let refused = ovos_toolbox_sdk::testing::Harness::open::<drone::Drone>(config.clone());
        let refused = refused.err().unwrap_or_else(|| panic!("{config} was taken"));
        assert!(refused.failure.message.contains(named), "{config}: {refused}");
    }
}
