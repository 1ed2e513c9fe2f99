//! Takeovers by pilots, ground stations and failsafes, and breaks of the link to the vehicle.

use std::time::Duration;

use crate::rig::Rig;
use drone::Drone;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::Harness;

/// The number of the simulator's last log entry.
fn mark(rig: &Rig) -> Value {
    rig.truth()["next_seq"].clone()
}

/// The motion commands sent to the vehicle since then.
fn sent_since(rig: &Rig, mark: &Value) -> Vec<Value> {
    let log = rig.sim(json!({"cmd": "log", "since": mark, "kind": "command", "limit": 1000}));
    let entries = log["entries"]
        .as_array()
        .or(log["log"].as_array())
        .cloned()
        .unwrap_or_default();
    let quiet = [
        "request_message",
        "set_message_interval",
        "image",
        "video",
        "camera",
        "storage",
    ];
    entries
        .into_iter()
        .filter(|entry| {
            let name = entry["name"].as_str().unwrap_or_default().to_lowercase();
            !quiet.iter().any(|word| name.contains(word))
        })
        .collect()
}

#[test]
fn who_takes_over_has_the_vehicle_until_it_is_handed_back() {
    let Some(rig) = Rig::open(json!({})) else {
        return;
    };
    let takeovers = [
        (
            "remote control",
            json!({"cmd": "pilot", "mode": "posctl", "sticks": [0, 0, 0]}),
            "POSCTL",
        ),
        (
            "ground station",
            json!({"cmd": "ground_station", "mode": "hold"}),
            "HOLD",
        ),
        (
            "failsafe",
            json!({"cmd": "failsafe", "mode": "return", "text": "Failsafe activated"}),
            "RETURN_TO_LAUNCH",
        ),
    ];
    for (who, takeover, mode) in takeovers {
        rig.take_off(5.0);
        let run = rig
            .harness
            .start("goto_local", json!({"north_m": 30, "east_m": 0, "down_m": -6}))
            .unwrap();
        rig.until("under way", |rig| {
            rig.truth()["mode"] == "offboard" && speed(rig) > 0.7
        });
        assert_eq!(rig.sim(takeover.clone())["ok"], true, "{takeover}");
        let code = if who == "failsafe" {
            "failsafe"
        } else {
            "pilot_override"
        };
        let ended = run.wait().result().unwrap();
        assert_eq!(
            (&ended["ok"], &ended["code"]),
            (&json!(false), &json!(code)),
            "{who}: {ended}"
        );
        assert!(ended["msg"].as_str().unwrap().contains(mode), "{who}: {ended}");
        let _ = rig.harness.wait_event("latched");
        // The service's own stop follows; it must not take the vehicle back.
        let since = mark(&rig);
        rig.harness.halt(&["all"], true).unwrap();
        if who == "failsafe" {
            // It climbs and flies home, which is not at rest.
            let braked = rig.harness.invoke("emergency_brake", json!({})).unwrap();
            assert_eq!(
                (&braked["ok"], &braked["code"]),
                (&json!(false), &json!("failsafe")),
                "{braked}"
            );
        }
        rig.refused("move_up", json!({"cm": 50}), code);
        rig.refused(
            "goto_local",
            json!({"north_m": 0, "east_m": 0, "down_m": -6}),
            code,
        );
        std::thread::sleep(Duration::from_millis(700));
        assert_eq!(
            sent_since(&rig, &since),
            Vec::<Value>::new(),
            "{who}: something was sent"
        );
        // Lifting the latch is refused while a pilot flies.
        if mode == "POSCTL" {
            assert!(rig.harness.resume().is_err(), "a pilot flies");
        }
        rig.ok("hold", json!({"ms": 0}));
        rig.harness.resume().unwrap();
        rig.ok("move_up", json!({"cm": 50}));
        rig.ok("land", json!({}));
    }
}

/// The vehicle reports its mode once a second, and the tools are called before that.
#[test]
fn a_takeover_that_is_not_reported_yet_is_respected() {
    let Some((config, control)) = Rig::config(json!({})) else {
        return;
    };
    let harness = Harness::open::<Drone>(config)
        .unwrap()
        .with_deadline(Duration::from_secs(120));
    let rig = Rig { harness, control };
    rig.until("a healthy vehicle", |rig| {
        rig.call("vehicle_health", json!({}))["armable"] == true
    });
    rig.take_off(5.0);
    let there = json!({"north_m": 3, "east_m": 0, "down_m": -5});
    for (tool, args) in [
        ("hold", json!({"ms": 0})),
        ("land", json!({})),
        ("goto_local", there),
        ("hold", json!({"ms": 0})),
        ("rtl", json!({})),
    ] {
        rig.sim(json!({"cmd": "pilot", "mode": "posctl", "sticks": [0, 0, 0]}));
        let since = mark(&rig);
        rig.refused(tool, args, "pilot_override");
        assert_eq!(sent_since(&rig, &since), Vec::<Value>::new(), "{tool}");
        assert_eq!(rig.truth()["mode"], "posctl", "{tool}");
        rig.sim(json!({"cmd": "ground_station", "mode": "hold"}));
        rig.until("handed back", |rig| {
            rig.call("vehicle_health", json!({}))["flight_mode"] == "HOLD"
        });
        rig.harness.resume().unwrap();
        // The toolbox flies it again.
        rig.ok("hold", json!({"ms": 0}));
    }
}

/// The vehicle is in the pilot's mode for less than the second between two heartbeats, as where a command of ours ends it.
#[test]
fn a_takeover_between_two_heartbeats_is_noticed() {
    let Some(rig) = Rig::airborne(5.0, json!({})) else {
        return;
    };
    rig.ok("hold", json!({"ms": 0}));
    for number in 0..5 {
        rig.sim(json!({"cmd": "pilot", "mode": "posctl", "sticks": [0, 0, 0]}));
        std::thread::sleep(Duration::from_millis(30 + 10 * number));
        rig.sim(json!({"cmd": "ground_station", "mode": "hold"}));
        rig.until("the takeover is known", |rig| {
            let state = rig.call("vehicle_state", json!({}));
            let how = state["safety"]["pilot_override"].clone();
            how.as_str().is_some_and(|how| how.contains("POSCTL"))
        });
        rig.refused("move_up", json!({"cm": 50}), "pilot_override");
        // Lifting the latch is refused until every report of the mode shows that the pilot has given it back.
        rig.until("it is handed back", |rig| rig.harness.resume().is_ok());
        rig.ok("hold", json!({"ms": 0}));
    }
}

#[test]
fn a_lost_link_ends_the_call_and_comes_back() {
    let Some(rig) = Rig::airborne(5.0, json!({})) else {
        return;
    };
    let run = rig
        .harness
        .start("goto_local", json!({"north_m": 40, "east_m": 0, "down_m": -6}))
        .unwrap();
    rig.until("under way", |rig| rig.place()[0] > 3.0);
    rig.sim(json!({"cmd": "drop_link", "seconds": 40}));
    let ended = run.wait().result().unwrap();
    let code = ended["code"].as_str().unwrap().to_string();
    assert!(
        ["link_lost", "stale_telemetry"].contains(&code.as_str()),
        "{ended}"
    );
    rig.until("link_ok false", |rig| {
        rig.call("vehicle_health", json!({}))["link_ok"] == false
    });
    assert_eq!(rig.call("move_up", json!({"cm": 50}))["code"], "link_down");
    rig.until("link_ok again", |rig| {
        rig.call("vehicle_health", json!({}))["link_ok"] == true
    });
    // Without setpoints PX4 left offboard control by itself, without our command.
    rig.refused("move_up", json!({"cm": 50}), "failsafe");
    rig.ok("hold", json!({"ms": 0}));
    rig.harness.resume().unwrap();
    rig.ok("move_up", json!({"cm": 50}));
}

#[test]
fn a_killed_server_is_started_again_and_the_vehicle_has_stopped() {
    let Some(rig) = Rig::airborne(5.0, json!({})) else {
        return;
    };
    let run = rig
        .harness
        .start("goto_local", json!({"north_m": 40, "east_m": 0, "down_m": -6}))
        .unwrap();
    rig.until("under way", |rig| rig.place()[0] > 3.0);
    kill_server(&rig);
    let ended = run.wait().result().unwrap();
    assert_eq!(ended["ok"], false, "{ended}");
    rig.until("at rest", |rig| speed(rig) < 0.2);
    assert!(rig.place()[0] < 15.0, "it flew on: {:?}", rig.place());
    rig.until("link_ok again", |rig| {
        rig.call("vehicle_health", json!({}))["link_ok"] == true
    });
    rig.ok("land", json!({}));
}

fn speed(rig: &Rig) -> f64 {
    let velocity: [f64; 3] = serde_json::from_value(rig.truth()["velocity"].clone()).unwrap();
    velocity.iter().map(|part| part * part).sum::<f64>().sqrt()
}

/// Kills the mavsdk_server of this rig only.
fn kill_server(rig: &Rig) {
    let url = format!("udpin://127.0.0.1:{}", rig.udp_port());
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let args: Vec<String> = line
            .split(|byte| *byte == 0)
            .map(|arg| String::from_utf8_lossy(arg).into_owned())
            .collect();
        if args
            .first()
            .is_some_and(|program| program.ends_with("mavsdk_server"))
            && args.contains(&url)
        {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            return;
        }
    }
    panic!("no mavsdk_server at {url}");
}
