//! A command whose last step reaches the vehicle after the call that sent it has ended, and after the stop: the vehicle
//! comes to rest all the same, as near as if the step had been on time. On virtual time.
use std::time::Duration;

use ovos_toolbox_sdk::serde_json::{Value, json};
use px4_sim::Mode;
use px4_sim::geo::{difference, length};
use px4_sim::log::Cause;

use crate::paused::{Paused, airborne};

/// A tool, its arguments, and the request of which the last step is late.
struct Late {
    tool: &'static str,
    args: Value,
    request: &'static str,
    /// Whether only an emergency stop ends it.
    safe: bool,
}

fn north(metres: f64) -> Value {
    let lat = 47.397_742 + (metres / 6_371_000.0).to_degrees();
    json!({"lat": lat, "lon": 8.545_594, "alt_m": 6})
}

/// Every request that leads the vehicle somewhere.
fn commands() -> Vec<Late> {
    let late = |tool, args, request, safe| Late {
        tool,
        args,
        request,
        safe,
    };
    let local = json!({"north_m": 20, "east_m": 0, "down_m": -6});
    vec![
        late("goto_gps", north(60.0), "goto", false),
        late("goto_local", local, "offboard", false),
        late("turn_cw", json!({"deg": 90}), "offboard", false),
        late(
            "follow_path",
            json!({"waypoints": [north(60.0)]}),
            "mission",
            false,
        ),
        late("land", json!({}), "land", true),
        late("rtl", json!({}), "return", true),
    ]
}

/// How a call ends.
const ENDS: [&str; 10] = [
    "a stop",
    "an emergency stop",
    "a cancel",
    "a cancel before its stop",
    "two stops",
    "an emergency stop after another one",
    "an emergency stop that lands",
    "a landing",
    "a close",
    "a close after a stop",
];

/// How late the last step is, milliseconds: some tenths of a second, longer than the brake once waited, and longer than the
/// request's own time limit.
fn delays(random: &mut fastrand::Rng) -> [u64; 4] {
    [random.u64(0..120), random.u64(120..700), 3400, 6100]
}

fn place(paused: &Paused) -> [f64; 3] {
    paused.fake.lock().vehicle.body().position
}

/// Ends the call in this way, and returns once that has been asked for.
async fn end(paused: &Paused, how: &str, mut call: std::pin::Pin<Box<dyn Future<Output = Value> + '_>>) {
    let fleet = &paused.fleet;
    let halt = match how {
        "a stop" | "a landing" | "a close after a stop" => fleet.halt(false).await,
        how if how.starts_with("an emergency") => fleet.halt(true).await,
        "two stops" => fleet.halt(false).await.and(fleet.halt(false).await),
        "a cancel" => {
            let answer = fleet.halt(false).await;
            drop(call);
            assert_eq!(answer, Ok(()), "{how}");
            return;
        }
        "a cancel before its stop" => {
            drop(call);
            assert_eq!(fleet.halt(false).await, Ok(()), "{how}");
            return;
        }
        _ => Ok(()),
    };
    assert_eq!(halt, Ok(()), "{how}");
    match how {
        "a close" | "a close after a stop" => fleet.close().await,
        "a landing" => {
            // The landing comes at once; only its own rest counts.
            let landed = fleet.call("land", json!({})).await;
            assert_eq!(landed["ok"], true, "{landed}\n{}", paused.story());
        }
        _ => {}
    }
    let ended = tokio::time::timeout(Duration::from_secs(3), &mut call).await;
    let answer = ended.expect("the call ends");
    assert!(
        ["stopped", "closed", "cancelled"]
            .iter()
            .any(|code| answer["code"] == *code),
        "{how}: {answer}"
    );
}

/// Holds the last step of a command back, ends the call before it, and checks that the vehicle stays where it is.
async fn check(paused: Paused, late: &Late, how: &'static str, delay_ms: u64, after_s: f64) {
    let what = format!(
        "{} ended by {how} after {after_s:.3} s, its last step late by {delay_ms} ms",
        late.tool
    );
    if how == "an emergency stop after another one" {
        // Its watch is not over when the next stop comes.
        paused.ok("move_up", json!({"cm": 100})).await;
        paused.fleet.halt(true).await.expect("sent");
        paused.pass(0.5).await;
        paused.fleet.resume().expect("no pilot");
    }
    paused.pass(1.0).await;
    paused.fake.lock().held_back = Some((late.request, delay_ms as f64 / 1000.0));
    let mut call: std::pin::Pin<Box<dyn Future<Output = Value> + '_>> =
        Box::pin(paused.fleet.call(late.tool, late.args.clone()));
    // Until the request has arrived, and a little longer.
    let arrived = async {
        while paused.fake.lock().held_back.is_some() {
            paused.pass(0.001).await;
        }
        paused.pass(after_s).await;
    };
    tokio::select! {
        answer = &mut call => panic!("{what}: {answer}\n{}", paused.story()),
        () = arrived => {}
    }
    let from = place(&paused);
    end(&paused, how, call).await;
    paused.pass(delay_ms as f64 / 1000.0 + 9.0).await;
    let late_at = paused.fake.lock().late_step_at;
    assert!(
        late_at.is_some(),
        "{what}: the late step did not come\n{}",
        paused.story()
    );
    if how == "an emergency stop that lands" {
        paused.pass(25.0).await;
    }
    if how.contains("land") {
        let away = difference(place(&paused), from);
        assert!(
            !paused.fake.lock().vehicle.armed() && away[0].hypot(away[1]) < 2.0,
            "{what}: {away:?}\n{}",
            paused.story()
        );
        return;
    }
    for _ in 0..2 {
        let (speed, away) = {
            let sim = paused.fake.lock();
            (
                length(sim.vehicle.body().velocity),
                length(difference(place_of(&sim), from)),
            )
        };
        assert!(
            paused.mode() == Mode::Hold && speed < 0.3 && away < 2.0,
            "{what}: {:?} at {speed:.1} m/s, {away:.1} m on\n{}",
            paused.mode(),
            paused.story()
        );
        paused.pass(6.0).await;
    }
}

fn place_of(sim: &crate::fake_mavsdk::Sim) -> [f64; 3] {
    sim.vehicle.body().position
}

fn late_steps(ends: &[&'static str]) {
    let seed = std::env::var("DRONE_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(11);
    let mut random = fastrand::Rng::with_seed(seed);
    for how in ends {
        for late in commands() {
            // A stop that is no emergency leaves what brings the vehicle to safety alone.
            let emergency = how.starts_with("an emergency");
            if late.safe && !emergency {
                continue;
            }
            for delay_ms in delays(&mut random) {
                // A close waits for 1.5 s.
                if how.contains("close") && delay_ms > 1000 {
                    continue;
                }
                let after_s = random.f64() * (delay_ms as f64 / 1000.0).min(1.0) * 0.9;
                eprintln!("seed {seed}: {} {how} {delay_ms} {after_s}", late.tool);
                let late = &late;
                let lands = *how == "an emergency stop that lands";
                let estop = if lands { "land" } else { "hold" };
                airborne(json!({"estop": estop}), 6.0, |paused| {
                    check(paused, late, how, delay_ms, after_s)
                });
            }
        }
    }
}

#[test]
fn a_step_that_comes_after_a_stop_moves_nothing() {
    late_steps(&ENDS[0..3]);
}

#[test]
fn a_step_that_comes_after_two_stops_moves_nothing() {
    late_steps(&ENDS[3..7]);
}

#[test]
fn a_step_that_comes_after_another_tool_or_the_end_moves_nothing() {
    late_steps(&ENDS[7..10]);
}

#[test]
fn a_takeoff_that_comes_after_its_stop_climbs_no_further() {
    use crate::paused::{empty, fly};
    for delay_ms in [40, 300, 3400, 6100_u64] {
        for emergency in [false, true] {
            fly(json!({}), empty(), |paused| async move {
                let what = format!("late by {delay_ms} ms, emergency {emergency}");
                paused.ok("arm", json!({})).await;
                paused.fake.lock().held_back = Some(("takeoff", delay_ms as f64 / 1000.0));
                let call = paused.fleet.call("takeoff", json!({"alt_m": 8}));
                tokio::pin!(call);
                let early = tokio::time::timeout(Duration::from_millis(20), &mut call).await;
                assert!(
                    early.is_err() && paused.fake.lock().held_back.is_none(),
                    "{what}: {early:?}"
                );
                paused.fleet.halt(emergency).await.expect("sent");
                let answer = call.await;
                assert_eq!(answer["code"], "stopped", "{what}: {answer}");
                paused.pass(delay_ms as f64 / 1000.0 + 8.0).await;
                assert!(paused.fake.lock().late_step_at.is_some(), "{what}");
                let up = paused.fake.lock().vehicle.height();
                let mode = paused.mode();
                assert!(
                    up < 1.0 && mode != Mode::Takeoff,
                    "{what}: {mode:?} at {up:.1} m\n{}",
                    paused.story()
                );
            });
        }
    }
}

#[test]
fn a_flight_that_begins_while_an_older_goto_is_open_goes_where_it_was_asked_to() {
    for delay_ms in [60, 500, 1800_u64] {
        airborne(json!({}), 6.0, |paused| async move {
            paused.fake.lock().held_back = Some(("goto", delay_ms as f64 / 1000.0));
            let first = paused.fleet.call("goto_gps", north(-60.0));
            let first = tokio::time::timeout(Duration::from_millis(30), first).await;
            assert!(first.is_err(), "{first:?}");
            paused.fleet.halt(false).await.expect("sent");
            let answer = paused.fleet.call("goto_gps", north(12.0)).await;
            assert_eq!(answer["ok"], true, "{delay_ms} ms: {answer}\n{}", paused.story());
            let south = paused.truth()["excursions"]["north_m"].clone();
            assert!(
                place(&paused)[0] > 10.0,
                "{delay_ms} ms: {south}\n{}",
                paused.story()
            );
        });
    }
}

#[test]
fn a_goto_that_is_late_because_the_link_was_lost_is_ended_when_it_is_heard_again() {
    for (delay_ms, silence_s) in [(200, 1.2), (900, 2.0), (2600, 4.0_f64)] {
        airborne(json!({}), 6.0, |paused| async move {
            let what = format!("{delay_ms} ms, silent for {silence_s} s");
            paused.fake.lock().held_back = Some(("goto", f64::from(delay_ms) / 1000.0));
            let call = paused.fleet.call("goto_gps", north(60.0));
            tokio::pin!(call);
            let early = tokio::time::timeout(Duration::from_millis(30), &mut call).await;
            assert!(early.is_err(), "{what}: {early:?}");
            let from = place(&paused);
            paused.fake.lock().silent = true;
            let _ = paused.fleet.halt(true).await;
            assert_eq!(call.await["code"], "stopped", "{what}");
            paused.pass((silence_s - 2.0).max(0.0)).await;
            paused.fake.lock().silent = false;
            paused.pass(12.0).await;
            let away = length(difference(place(&paused), from));
            assert!(
                away < 8.0 && paused.mode() == Mode::Hold,
                "{what}: {away:.1} m\n{}",
                paused.story()
            );
        });
    }
}

#[test]
fn a_pilot_who_took_over_keeps_the_vehicle_from_a_late_goto() {
    for delay_ms in [60, 300, 700_u64] {
        airborne(json!({}), 6.0, |paused| async move {
            paused.fake.lock().held_back = Some(("goto", delay_ms as f64 / 1000.0));
            let call = paused.fleet.call("goto_gps", north(60.0));
            tokio::pin!(call);
            let early = tokio::time::timeout(Duration::from_millis(30), &mut call).await;
            assert!(early.is_err(), "{early:?}");
            paused.fake.lock().vehicle.set_mode(Mode::Posctl, Cause::Pilot);
            let answer = call.await;
            assert_eq!(answer["code"], "pilot_override", "{answer}");
            paused.pass(6.0).await;
            assert_eq!(paused.mode(), Mode::Posctl, "{delay_ms} ms\n{}", paused.story());
        });
    }
}
