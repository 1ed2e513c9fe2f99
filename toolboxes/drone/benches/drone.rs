//! What a guarded call costs, and how fast a brake is at the vehicle: a table, goals beside the figures.
//!
//! Through the real mavsdk_server and px4-sim, on the machine it runs on.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench prints, and fails by panicking"
)]

#[path = "../tests/support/rig.rs"]
mod rig;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ovos_toolbox_sdk::prelude::*;
use rig::Rig;

fn percentile(times: &mut [Duration], part: f64) -> Duration {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * part) as usize]
}

fn row(what: &str, times: &mut [Duration], goal: &str) {
    let (median, late) = (percentile(times, 0.5), percentile(times, 0.99));
    println!("{what:<62} {:>10.1?} {:>10.1?}   {goal}", median, late);
}

fn timed(count: usize, mut work: impl FnMut()) -> Vec<Duration> {
    (0..count)
        .map(|_| {
            let began = Instant::now();
            work();
            began.elapsed()
        })
        .collect()
}

fn unix() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64()
}

/// From the halt to the zero velocity at the vehicle, in offboard control.
fn brake(rig: &Rig) -> Option<Duration> {
    rig.harness.resume().unwrap();
    rig.ok("replan", json!({"reason": "bench"}));
    let action = Action {
        params: json!({"cm": 300}).as_object().unwrap().clone(),
        subsystems: vec!["drone/flight".to_string()],
        ..Action::named("move_left")
    };
    let run = rig.harness.start_action("move_left", action, json!({})).unwrap();
    rig.until("offboard", |rig| rig.truth()["mode"] == "offboard");
    let since = rig.truth()["next_seq"].clone();
    let began = unix();
    rig.harness.halt(&["all"], true).unwrap();
    let _ = run.wait();
    rig.until("hold", |rig| rig.truth()["mode"] == "hold");
    let log = rig.sim(json!({"cmd": "log", "since": since, "kind": "setpoint", "limit": 1000}));
    let zero = log["entries"]
        .as_array()?
        .iter()
        .find(|entry| entry["velocity"].is_array())?
        .clone();
    Duration::try_from_secs_f64(zero["unix"].as_f64()? - began).ok()
}

fn main() {
    let config = json!({"simulator": {"speed": 1.0}, "flight_limits": {"max_replans": 100_000}});
    let Some(rig) = Rig::open(config) else {
        return;
    };
    println!("{:<62} {:>10} {:>10}", "drone", "median", "p99");
    let mut empty = timed(2000, || {
        drop(rig.call("log", json!({"level": "INFO", "text": "x"})))
    });
    row(
        "a call that asks nothing, through the toolbox's C table",
        &mut empty,
        "",
    );
    let mut read = timed(2000, || drop(rig.call("battery_status", json!({}))));
    row(
        "battery_status, from the cache",
        &mut read,
        "goal: 50 us in the toolbox",
    );
    let mut refused = timed(2000, || drop(rig.call("move_up", json!({"cm": 50}))));
    row("move_up, judged by every guard and refused", &mut refused, "");
    let base = percentile(&mut empty, 0.5);
    println!(
        "{:<62} {:>10.1?} {:>10}",
        "  of which the guards",
        percentile(&mut refused, 0.5).saturating_sub(base),
        ""
    );
    rig.sim(json!({"cmd": "set_drain", "pct_per_s": 0}));
    rig.take_off(5.0);
    let mut brakes: Vec<Duration> = (0..60).filter_map(|_| brake(&rig)).collect();
    assert!(
        brakes.len() >= 50,
        "only {} brakes reached the vehicle",
        brakes.len()
    );
    row(
        "halt to zero velocity at the vehicle (60 brakes)",
        &mut brakes,
        "goal: p99 below 20 ms",
    );
}
