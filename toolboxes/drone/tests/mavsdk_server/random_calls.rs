//! Two hundred random calls through the published mavsdk_server at four times real time: the checks of
//! `fake_mavsdk/random_calls.rs` hold with the real server, too.
use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;

use crate::hostile::{Caller, READS, happened, shown};
use crate::rig::{Rig, SPEED};

const RADIUS_M: f64 = 25.0;
const MARGIN_M: f64 = 3.0;
const CEILING_M: f64 = 30.0;
const FLOOR_M: f64 = 0.5;
/// At four times real time setpoints arrive four times as late in vehicle time.
const SLACK_M: f64 = 0.1;

fn vehicle_seconds(seconds: f64) {
    std::thread::sleep(Duration::from_secs_f64(seconds / SPEED));
}

fn check(seed: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("DRONE_SEED").unwrap_or(seed);
    let calls = number("DRONE_CALLS").unwrap_or(100);
    let config = json!({"fence": {"radius_m": RADIUS_M}, "flight_limits": {"max_replans": 1000},
        "simulator": {"quirks": "all,-hover_wanders,-ground_drifts"}});
    let Some(rig) = Rig::open(config) else { return };
    rig.sim(json!({"cmd": "set_drain", "pct_per_s": 0.0}));
    let mut caller = Caller::new(seed);
    let mut story = Vec::new();
    for _ in 0..calls {
        let before = rig.truth();
        let (in_air, armed) = (before["landed"] != "on_ground", before["armed"] == true);
        let (tool, args) = caller.next(in_air, armed);
        story.push(format!(
            "{:.1} {tool} {}",
            before["t"].as_f64().unwrap(),
            shown(&args)
        ));
        // A failure instead of an answer means that the arguments cannot be read; a missing answer panics in the
        // harness.
        let answer = match rig.harness.call(tool, args.clone()) {
            Ok(answer) => answer,
            Err(failure) => json!({"ok": false, "code": "refused", "msg": failure.to_string()}),
        };
        let truth = rig.truth();
        story.push(format!(
            "    {} {} {}",
            answer["ok"], answer["code"], answer["msg"]
        ));
        let excursions = &truth["excursions"];
        let metres = |key: &str| excursions[key].as_f64().unwrap_or(f64::NAN);
        let inside = RADIUS_M - metres("radius_m");
        let ok = answer["ok"].as_bool();
        let problem = if inside < MARGIN_M - SLACK_M {
            Some(format!("it came within {inside:.2} m of the fence"))
        } else if metres("up_m") > CEILING_M + SLACK_M {
            Some(format!("it rose to {:.2} m", metres("up_m")))
        } else if metres("lowest_m") < FLOOR_M - SLACK_M {
            Some(format!(
                "it sank to {:.2} m, and no call landed it",
                metres("lowest_m")
            ))
        } else if ok.is_none() && !READS.contains(&tool) {
            Some("no ok".to_owned())
        } else if ok == Some(true) && !happened(tool, &args, &answer, &truth) {
            Some("ok, and it did not happen".to_owned())
        } else {
            None
        };
        if let Some(problem) = problem {
            panic!(
                "{problem}: DRONE_SEED={seed}, {tool}: {answer}\n{truth}\n{}\n{}",
                story[story.len().saturating_sub(20)..].join("\n"),
                rig.story()
            );
        }
        // The service latches after both until an operator lifts the latch.
        if tool == "emergency_brake" || answer["code"] == "pilot_override" {
            vehicle_seconds(6.0);
            rig.harness.resume().expect("no other party flies");
        }
        if caller.rests() {
            vehicle_seconds(12.0);
            let before = rig.place();
            vehicle_seconds(4.0);
            let after = rig.place();
            let moved = (0..3)
                .map(|axis| (after[axis] - before[axis]).abs())
                .fold(0.0, f64::max);
            assert!(
                moved < 0.1,
                "it moved {moved:.2} m without a call: DRONE_SEED={seed}\n{}",
                story.join("\n")
            );
        }
    }
    let flown = rig.truth()["excursions"]["path_m"].as_f64().unwrap();
    eprintln!("seed {seed}: {calls} calls, {flown:.0} m flown");
    assert!(flown > calls as f64 * 0.2, "it hardly flew: {flown} m");
}

#[test]
fn random_calls_through_the_real_server_seed_1() {
    check(1);
}

#[test]
fn random_calls_through_the_real_server_seed_2() {
    check(2);
}
