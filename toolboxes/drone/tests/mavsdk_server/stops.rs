//! A stop before, at each step of, and at seeded instants within every motion tool: afterwards only commands that bring
//! the vehicle to rest are sent.

use std::time::{Duration, Instant};

use crate::rig::Rig;
use ovos_toolbox_sdk::prelude::*;

/// Every tool that moves in the air, with arguments that take long.
fn moving() -> Vec<(&'static str, Value)> {
    let north = 47.397_742 + (25.0_f64 / 6_371_000.0).to_degrees();
    vec![
        ("set_yaw", json!({"deg": 170})),
        ("turn_cw", json!({"deg": 90})),
        ("turn_ccw", json!({"deg": 90})),
        ("move_forward", json!({"cm": 200})),
        ("move_left", json!({"cm": 300})),
        ("move_right", json!({"cm": 300})),
        ("move_up", json!({"cm": 300})),
        ("move_down", json!({"cm": 200})),
        ("goto_gps", json!({"lat": north, "lon": 8.545_594, "alt_m": 8})),
        ("goto_local", json!({"north_m": -20, "east_m": 5, "down_m": -6})),
        (
            "follow_path",
            json!({"waypoints": [{"lat": north, "lon": 8.545_594, "alt_m": 8}]}),
        ),
        ("scan", json!({"object": "unicorn", "step_deg": 45})),
        (
            "orient_to_object",
            json!({"object": "tree", "center_band": {"min": 0.49, "max": 0.51}}),
        ),
        (
            "safe_approach_until",
            json!({"object": "tree", "stop_dist_m": 3.0}),
        ),
        ("track_object", json!({"object": "tree", "horizon_s": 20})),
    ]
}

/// Greatest stopping distance, metres: 10 m from 5 m/s, plus 0.3 s of a busy machine at four times real time.
const NEAR_M: f64 = 16.0;
/// PX4's `MPC_XY_CRUISE`, the speed of a `goto_gps`, and what it overshoots.
const CRUISE_M_S: f64 = 6.0;
/// All quirks except drift, so that rest is visible.
const STEADY: &str = "all,-hover_wanders,-ground_drifts";

fn speed(rig: &Rig) -> f64 {
    let velocity: [f64; 3] = serde_json::from_value(rig.truth()["velocity"].clone()).unwrap();
    velocity.iter().map(|part| part * part).sum::<f64>().sqrt()
}

/// Checks that the vehicle rests in Hold and stays there.
fn comes_to_rest(rig: &Rig, what: &str) {
    // Slow for a while, not only at the instant of a reversal.
    let mut slow = None;
    rig.until(&format!("{what}: at rest in hold"), |rig| {
        if rig.truth()["mode"] != "hold" || speed(rig) >= 0.15 {
            slow = None;
            return false;
        }
        slow.get_or_insert_with(Instant::now).elapsed() > Duration::from_millis(300)
    });
    let before = rig.place();
    std::thread::sleep(Duration::from_millis(300));
    let after = rig.place();
    let moved = (0..3)
        .map(|axis| (after[axis] - before[axis]).powi(2))
        .sum::<f64>()
        .sqrt();
    assert!(
        moved < 0.4,
        "{what}: moved {moved:.2} m after the stop\n{:#}",
        rig.story()
    );
    assert_eq!(rig.truth()["mode"], "hold", "{what}");
}

fn ready(rig: &Rig) {
    rig.harness.resume().unwrap();
    rig.sim(json!({"cmd": "teleport", "place": [0, 0, -6], "yaw_deg": 0}));
    rig.until("in place", |rig| {
        let state = rig.call("vehicle_state", json!({}));
        let alt = state["state"]["alt_m"].as_f64().unwrap_or_default();
        (alt - 6.0).abs() < 0.7 && state["state"]["mode"] == "HOLD"
    });
    rig.ok("replan", json!({"reason": "next"}));
}

/// Starts a tool, stops it after `delay`, and checks that it ended and the vehicle rests.
fn stop_after(rig: &Rig, tool: &str, args: &Value, delay: Duration, emergency: bool) {
    let what = format!("{tool} stopped after {delay:?} (emergency {emergency})");
    ready(rig);
    let run = rig
        .harness
        .start_action(tool, action(tool, args), json!({}))
        .unwrap();
    let early = run.wait_for(delay);
    let subsystem = if emergency { "all" } else { "drone/flight" };
    let from = rig.place();
    rig.harness
        .halt(&[subsystem], emergency)
        .unwrap_or_else(|refused| panic!("{what}: {refused}"));
    run.cancel();
    if early.is_none() {
        let ended = run
            .wait_for(Duration::from_secs(5))
            .unwrap_or_else(|| panic!("{what}: the call did not end"));
        if let Ok(output) = ended.result() {
            assert!(
                ["stopped", "cancelled"]
                    .iter()
                    .any(|code| output["code"] == *code)
                    || output["ok"] == true,
                "{what}: {output}"
            );
        }
    }
    comes_to_rest(rig, &what);
    // The vehicle may have come to rest because it arrived.
    let to = rig.place();
    let on = (0..3)
        .map(|axis| (to[axis] - from[axis]).powi(2))
        .sum::<f64>()
        .sqrt();
    assert!(on < NEAR_M, "{what}: {on:.1} m on\n{}", rig.story());
}

fn action(tool: &str, args: &Value) -> Action {
    Action {
        params: args.as_object().cloned().unwrap_or_default(),
        subsystems: vec!["drone/flight".to_string()],
        ..Action::named(tool)
    }
}

#[test]
fn every_moving_tool_can_be_stopped_at_any_moment() {
    let limits = json!({"max_replans": 1000, "max_forward_m": 50.0, "max_rotation_deg": 3600});
    let Some(rig) = Rig::airborne(
        6.0,
        json!({"flight_limits": limits, "simulator": {"quirks": STEADY}}),
    ) else {
        return;
    };
    rig.sim(json!({"cmd": "set_drain", "pct_per_s": 0}));
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(5);
    println!("SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for (tool, args) in moving() {
        stop_after(&rig, tool, &args, Duration::ZERO, true);
        let delay = Duration::from_millis(random.u64(20..900));
        stop_after(&rig, tool, &args, delay, random.bool());
    }
}

/// mavsdk_server leaves offboard mode first, and sends the flight to a position when that is acknowledged: after the
/// commands of the stop.
#[test]
fn a_goto_that_is_sent_after_its_stop_is_stopped_too() {
    let quirks = format!("{STEADY},late_mode_acks");
    let Some(rig) = Rig::airborne(6.0, json!({"simulator": {"quirks": quirks}})) else {
        return;
    };
    rig.sim(json!({"cmd": "set_drain", "pct_per_s": 0}));
    let (_, goto) = moving().swap_remove(8);
    let mut late = 0;
    for (delay_ms, emergency) in [
        (5, true),
        (20, false),
        (40, true),
        (5, false),
        (20, true),
        (60, false),
    ] {
        ready(&rig);
        // Leaves mode Hold.
        rig.ok("turn_cw", json!({"deg": 10}));
        let what = format!("goto_gps stopped after {delay_ms} ms (emergency {emergency})");
        let sent = commands(&rig).len();
        let run = rig
            .harness
            .start_action("goto_gps", action("goto_gps", &goto), json!({}))
            .unwrap();
        rig.until("the switch to hold", |rig| commands(rig).len() > sent);
        let _ = run.wait_for(Duration::from_millis(delay_ms));
        let from = rig.place();
        rig.harness.halt(&["all"], emergency).unwrap();
        run.cancel();
        assert!(run.wait_for(Duration::from_secs(5)).is_some(), "{what}: no end");
        rig.until("the goto and the stop", |rig| {
            let names = commands(rig);
            names[sent..].iter().filter(|name| *name == "reposition").count() >= 2
        });
        comes_to_rest(&rig, &what);
        std::thread::sleep(Duration::from_millis(500));
        comes_to_rest(&rig, &what);
        let to = rig.place();
        let on = (to[0] - from[0]).hypot(to[1] - from[1]);
        // The stop's own flight to a position is late, too: the vehicle accelerates until then, and overshoots.
        assert!(on < NEAR_M, "{what}: {on:.1} m on\n{}", rig.story());
        late += usize::from(
            commands(&rig)[sent..]
                .iter()
                .filter(|name| *name == "reposition")
                .count()
                >= 3,
        );
    }
    assert!(late > 0, "no goto came after its stop\n{}", rig.story());
}

/// The commands that the vehicle was given, oldest first.
fn commands(rig: &Rig) -> Vec<String> {
    let log = rig.sim(json!({"cmd": "log", "since": 0, "limit": 100_000}));
    let entries = log["log"].as_array().unwrap();
    let named = entries.iter().filter_map(|entry| entry["name"].as_str());
    named.map(ToString::to_string).collect()
}

#[test]
fn the_brake_answers_with_what_the_vehicle_does() {
    let Some(rig) = Rig::airborne(6.0, json!({"simulator": {"quirks": STEADY}})) else {
        return;
    };
    let north = 47.397_742 + (70.0_f64 / 6_371_000.0).to_degrees();
    let there = json!({"lat": north, "lon": 8.545_594, "alt_m": 8});
    let run = rig
        .harness
        .start_action("goto_gps", action("goto_gps", &there), json!({}))
        .unwrap();
    rig.until("fast", |rig| speed(rig) > 4.0);
    let from = rig.truth();
    let braked = rig.harness.invoke("emergency_brake", json!({})).unwrap();
    assert_eq!(braked["ok"], true, "{braked}\n{}", rig.story());
    assert_eq!(braked["state"]["mode"], "HOLD", "{braked}\n{}", rig.story());
    // It answers as soon as the vehicle slows down, and says when it will be at rest.
    let msg = braked["msg"].as_str().unwrap();
    assert!(
        msg.contains("at rest in about") && msg.contains("at_rest"),
        "{braked}"
    );
    run.cancel();
    let ended = run.wait().result().unwrap();
    assert_eq!(ended["code"], "stopped", "{ended}");
    comes_to_rest(&rig, "emergency_brake");
    let event = rig.harness.wait_event("at_rest").data.unwrap();
    assert_eq!(
        (&event["emergency"], &event["mode"]),
        (&json!(true), &json!("HOLD")),
        "{event}"
    );
    assert!(
        event["moved_m"].as_f64().is_some_and(|metres| metres > 3.0),
        "{event}"
    );
    let north = |truth: &Value| truth["position"][0].as_f64().unwrap();
    let on = north(&rig.truth()) - north(&from);
    // The vehicle flies on while a busy machine gets from that look to the command.
    let before_it = held_at(&rig) - from["t"].as_f64().unwrap();
    assert!(
        on < NEAR_M + CRUISE_M_S * before_it,
        "{on:.1} m on, of which {before_it:.2} s before the command\n{}",
        rig.story()
    );
}

/// The simulated second at which the vehicle was first told to hold.
fn held_at(rig: &Rig) -> f64 {
    let log = rig.sim(json!({"cmd": "log", "since": 0, "limit": 5000}));
    let entries = log["log"].as_array().unwrap();
    let hold = entries.iter().find(|entry| entry["name"] == "set_mode hold");
    hold.expect("a hold")["t"].as_f64().unwrap()
}

#[test]
fn a_policy_ends_at_each_of_its_steps() {
    let limits = json!({"max_replans": 1000, "max_forward_m": 50.0, "max_rotation_deg": 3600});
    let Some(rig) = Rig::airborne(
        6.0,
        json!({"flight_limits": limits, "simulator": {"quirks": STEADY}}),
    ) else {
        return;
    };
    for (tool, args, steps) in [
        ("scan", json!({"object": "unicorn", "step_deg": 45}), 3),
        (
            "safe_approach_until",
            json!({"object": "tree", "stop_dist_m": 3.0, "step_cm": 50}),
            3,
        ),
    ] {
        for step in 1..=steps {
            ready(&rig);
            let run = rig
                .harness
                .start_action(tool, action(tool, &args), json!({}))
                .unwrap();
            rig.until("the step", |_| {
                let own = run.progress().into_iter().filter(|one| {
                    let message = one.message.clone().unwrap_or_default();
                    message.starts_with("turn ") || message.starts_with("tree is")
                });
                own.count() >= step
            });
            rig.harness.halt(&["all"], true).unwrap();
            run.cancel();
            assert!(
                run.wait_for(Duration::from_secs(5)).is_some(),
                "{tool} at step {step} did not end"
            );
            comes_to_rest(&rig, &format!("{tool} at step {step}"));
        }
    }
}

#[test]
fn a_stop_during_arm_and_takeoff_leaves_nothing_moving() {
    let Some(rig) = Rig::open(json!({"simulator": {"quirks": STEADY}})) else {
        return;
    };
    for (wait, emergency) in [(0, true), (300, true), (1200, false), (1500, true)] {
        rig.harness.resume().unwrap();
        if rig.truth()["armed"] == true {
            rig.ok("land", json!({}));
        }
        rig.ok("arm", json!({}));
        let run = rig
            .harness
            .start_action("takeoff", action("takeoff", &json!({"alt_m": 8})), json!({}))
            .unwrap();
        let _ = run.wait_for(Duration::from_millis(wait));
        rig.harness.halt(&["all"], emergency).unwrap();
        run.cancel();
        assert!(
            run.wait_for(Duration::from_secs(5)).is_some(),
            "take-off did not end"
        );
        rig.until("at rest", |rig| {
            let truth = rig.truth();
            (truth["mode"] == "hold" || truth["armed"] == false) && speed(rig) < 0.15
        });
        let up = -rig.place()[2];
        std::thread::sleep(Duration::from_millis(500));
        assert!(
            (-rig.place()[2] - up).abs() < 0.3,
            "it went on to climb after {wait} ms"
        );
    }
}
