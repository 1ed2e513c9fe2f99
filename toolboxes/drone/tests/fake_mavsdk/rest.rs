//! However a flight is ended, the vehicle comes to rest soon and nearby. A command counts when the vehicle slows down,
//! not when it is acknowledged. On virtual time.
use std::time::Duration;

use ovos_toolbox_sdk::serde_json::{Value, json};
use px4_sim::geo::{difference, length};
use px4_sim::log::Cause;
use px4_sim::params::Param;
use px4_sim::{Home, Mode, Vehicle, World};

use crate::paused::{Paused, fly, fly_this, steady};

/// Greatest stopping distance, metres: from 5 m/s, including a second until the stop is known.
const NEAR_M: f64 = 12.0;

fn nothing_around() -> World {
    World {
        things: Vec::new(),
        ..World::default()
    }
}

/// A position this many metres north of home.
fn north(metres: f64) -> Value {
    let lat = 47.397_742 + (metres / 6_371_000.0).to_degrees();
    json!({"lat": lat, "lon": 8.545_594, "alt_m": 5})
}

fn path(metres: f64) -> Value {
    json!({"waypoints": [north(metres)], "cruise_mps": 5})
}

/// A path of more than a minute; PX4 flies to the first waypoint at its own speed.
fn slow_path() -> Value {
    json!({"waypoints": [north(8.0), north(80.0)], "cruise_mps": 1})
}

fn speed(paused: &Paused) -> f64 {
    length(paused.fake.lock().vehicle.body().velocity)
}

fn place(paused: &Paused) -> [f64; 3] {
    paused.fake.lock().vehicle.body().position
}

/// Starts a call and lets it fly for this long; it must not end before.
async fn under_way(call: &mut (impl Future<Output = Value> + Unpin), seconds: f64) {
    let early = tokio::time::timeout(Duration::from_secs_f64(seconds), call).await;
    assert!(early.is_err(), "it ended too early: {early:?}");
}

/// Checks that the vehicle rests within `seconds`, at most [`NEAR_M`] from `from`, and stays at rest.
async fn rests(paused: &Paused, from: [f64; 3], seconds: f64, what: &str) {
    rests_within(paused, from, NEAR_M, seconds, what).await;
}

async fn rests_within(paused: &Paused, from: [f64; 3], near_m: f64, seconds: f64, what: &str) {
    paused.pass(seconds).await;
    for _ in 0..2 {
        let (fast, away) = (speed(paused), length(difference(place(paused), from)));
        assert!(
            fast < 0.3 && away < near_m,
            "{what}: {fast:.1} m/s, {away:.1} m on\n{}",
            paused.story()
        );
        paused.pass(5.0).await;
    }
}

#[test]
fn a_stop_ends_a_flight_to_a_place() {
    for emergency in [false, true] {
        // Also at the start of the flight, when the mode is still the previous one and the vehicle is slow.
        for after in [0.05, 0.6, 6.0] {
            fly(json!({}), nothing_around(), |paused| async move {
                let what = format!("emergency {emergency}, after {after} s");
                paused.take_off(5.0).await;
                {
                    let call = paused.fleet.call("goto_gps", north(70.0));
                    tokio::pin!(call);
                    under_way(&mut call, after).await;
                    let from = place(&paused);
                    paused.fleet.halt(emergency).await.expect(&what);
                    let answer = call.await;
                    assert_eq!(answer["code"], "stopped", "{what}: {answer}");
                    rests(&paused, from, 7.0, &what).await;
                }
                assert_eq!(paused.mode(), Mode::Hold, "{what}\n{}", paused.story());
                // The brake does not disturb later calls.
                paused.fleet.resume().expect("no pilot");
                paused.ok("goto_gps", north(30.0)).await;
            });
        }
    }
}

#[test]
fn hold_ends_a_flight_that_another_pilot_began() {
    fly(json!({}), nothing_around(), |paused| async move {
        paused.take_off(5.0).await;
        {
            let mut sim = paused.fake.lock();
            let there = sim.vehicle.home.to_global(80.0, 0.0);
            sim.vehicle.reposition(Some(there), None, None);
        }
        paused.pass(5.0).await;
        assert!(speed(&paused) > 3.0, "{}", paused.story());
        let from = place(&paused);
        paused.ok("hold", json!({"ms": 0})).await;
        assert!(speed(&paused) < 0.95, "it said that it holds\n{}", paused.story());
        rests(&paused, from, 3.0, "hold").await;
    });
}

#[test]
fn a_goto_that_is_not_reached_leaves_the_vehicle_at_rest() {
    fly(json!({}), nothing_around(), |paused| async move {
        paused.take_off(5.0).await;
        let call = paused.fleet.call("goto_gps", north(70.0));
        tokio::pin!(call);
        under_way(&mut call, 4.0).await;
        // A ground station gives it a new target in the same mode: only its motion shows that.
        {
            let mut sim = paused.fake.lock();
            let back = sim.vehicle.home.to_global(-90.0, 0.0);
            sim.vehicle.reposition(Some(back), None, None);
        }
        let answer = call.await;
        assert_eq!(answer["code"], "not_reached", "{answer}");
        let from = place(&paused);
        rests(&paused, from, 6.0, "goto_gps").await;
    });
}

#[test]
fn a_goto_that_is_carried_out_without_an_acknowledgement_is_ended() {
    fly(json!({}), nothing_around(), |paused| async move {
        paused.take_off(5.0).await;
        paused.fake.lock().unacknowledged = true;
        let answer = paused.fleet.call("goto_gps", north(70.0)).await;
        assert_eq!(answer["code"], "unconfirmed", "{answer}");
        let from = place(&paused);
        rests(&paused, from, 6.0, "goto_gps").await;
        // The mode shows the mission, even without an acknowledgement.
        paused.ok("follow_path", path(50.0)).await;
    });
}

#[test]
fn a_takeoff_that_takes_too_long_does_not_climb_on() {
    let mut vehicle = Vehicle::new(Home::default(), steady(), nothing_around());
    vehicle
        .params
        .set("MPC_TKO_SPEED", Param::Float(0.2))
        .expect("a parameter of PX4");
    fly_this(json!({}), vehicle, |paused| async move {
        paused.ok("arm", json!({})).await;
        let answer = paused.fleet.call("takeoff", json!({"alt_m": 8})).await;
        assert_eq!(answer["code"], "not_reached", "{answer}");
        let from = place(&paused);
        rests(&paused, from, 3.0, "takeoff").await;
        let climbed = from[2] - place(&paused)[2];
        assert!(climbed < 0.6, "it climbed {climbed:.1} m on");
        assert_eq!(paused.mode(), Mode::Hold);
    });
}

#[test]
fn a_vehicle_that_was_not_heard_is_stopped_when_it_is_heard_again() {
    // Stopped before the link loss is known, after it, and not at all.
    for (tool, args, fast_after) in [("follow_path", slow_path(), 9.0), ("goto_gps", north(90.0), 3.0)] {
        for halted_after in [Some(0.2), Some(5.0), None] {
            fly(json!({}), nothing_around(), |paused| {
                let args = args.clone();
                async move {
                    let what = format!("{tool}, stopped after {halted_after:?} s of silence");
                    paused.take_off(5.0).await;
                    let call = paused.fleet.call(tool, args);
                    tokio::pin!(call);
                    under_way(&mut call, fast_after).await;
                    paused.fake.lock().silent = true;
                    let mut silence = 9.0;
                    if let Some(seconds) = halted_after {
                        // The call may end by itself because of the link loss.
                        let _ = tokio::time::timeout(Duration::from_secs_f64(seconds), &mut call).await;
                        // No acknowledgement arrives.
                        paused.fleet.halt(true).await.unwrap_err();
                        silence -= seconds;
                    } else {
                        let answer = call.await;
                        assert_eq!(answer["code"], "link_lost", "{what}: {answer}");
                        silence -= 4.0;
                    }
                    paused.pass(silence).await;
                    assert!(speed(&paused) > 0.8, "{what}: {}", paused.story());
                    let from = place(&paused);
                    paused.fake.lock().silent = false;
                    // A second and a half longer: until it has reported its mode, another party may fly it.
                    rests_within(&paused, from, NEAR_M + 7.5, 9.0, &what).await;
                    assert_eq!(paused.mode(), Mode::Hold, "{what}: {}", paused.story());
                }
            });
        }
    }
}

#[test]
fn who_took_over_while_it_was_not_heard_keeps_it() {
    fly(json!({}), nothing_around(), |paused| async move {
        paused.take_off(5.0).await;
        let call = paused.fleet.call("follow_path", slow_path());
        tokio::pin!(call);
        under_way(&mut call, 9.0).await;
        paused.fake.lock().silent = true;
        assert_eq!(call.await["code"], "link_lost");
        paused.pass(5.0).await;
        paused.fake.lock().vehicle.set_mode(Mode::Posctl, Cause::Pilot);
        paused.pass(5.0).await;
        let since = paused.time();
        paused.fake.lock().silent = false;
        paused.pass(15.0).await;
        assert_eq!(paused.commands_since(since), Vec::<String>::new());
        assert_eq!(paused.mode(), Mode::Posctl);
    });
}

#[test]
fn an_emergency_brake_does_not_call_a_return_of_the_autopilots_a_rest() {
    fly(json!({}), nothing_around(), |paused| async move {
        paused.take_off(5.0).await;
        let call = paused.fleet.call("goto_gps", north(70.0));
        tokio::pin!(call);
        under_way(&mut call, 5.0).await;
        paused
            .fake
            .lock()
            .vehicle
            .failsafe(Mode::Return, "Failsafe activated");
        let answer = call.await;
        assert_eq!(answer["code"], "failsafe", "{answer}");
        let before = paused.time();
        let answer = paused.fleet.call("emergency_brake", json!({})).await;
        assert_eq!(
            (&answer["ok"], &answer["code"]),
            (&json!(false), &json!("failsafe")),
            "{answer}"
        );
        assert_eq!(paused.commands_since(before), Vec::<String>::new());
    });
}
