//! After any end of a flight, the next one begins with an `arm` that works. On virtual time.
use ovos_toolbox_sdk::serde_json::json;
use px4_sim::log::Cause;
use px4_sim::{Home, Mode, Quirks, Vehicle, World};

use crate::paused::{Paused, fly_this};

/// A way to end a flight on the ground.
type End = (&'static str, fn(&mut Vehicle));

const ENDS: &[End] = &[
    ("rtl", |_| {}),
    ("land", |_| {}),
    ("failsafe lands", |vehicle| {
        vehicle.failsafe(Mode::Land, "Failsafe activated")
    }),
    ("failsafe returns", |vehicle| {
        vehicle.failsafe(Mode::Return, "Failsafe activated")
    }),
    ("pilot lands", |vehicle| {
        vehicle.set_mode(Mode::Posctl, Cause::Pilot);
        vehicle.set_mode(Mode::Land, Cause::Pilot);
    }),
    ("station lands", |vehicle| {
        vehicle.set_mode(Mode::Land, Cause::GroundStation);
    }),
];

/// Flies, with `last` as the final action in the air.
async fn fly_some(paused: &Paused, last: &str) {
    match last {
        "move_up" => drop(paused.ok("move_up", json!({"cm": 50})).await),
        "turn_cw" => drop(paused.ok("turn_cw", json!({"deg": 30})).await),
        "follow_path" => {
            let lat = 47.397_742 + (8.0_f64 / 6_371_000.0).to_degrees();
            let path = json!({"waypoints": [{"lat": lat, "lon": 8.545_594, "alt_m": 5}]});
            drop(paused.ok("follow_path", path).await);
        }
        "brake" => {
            paused.fleet.halt(true).await.expect("it is heard");
            // A failsafe within the same second would end the stop, too.
            paused.pass(4.0).await;
        }
        _ => {}
    }
}

#[test]
fn every_end_on_the_ground_is_followed_by_an_arm_that_works() {
    for last in ["move_up", "turn_cw", "follow_path", "brake", "hover"] {
        for (end, act) in ENDS {
            let world = World {
                things: Vec::new(),
                ..World::default()
            };
            let vehicle = Vehicle::new(Home::default(), Quirks::all(), world);
            fly_this(json!({}), vehicle, |paused| async move {
                let what = format!("{last}, then {end}");
                paused.take_off(3.0).await;
                fly_some(&paused, last).await;
                match *end {
                    "rtl" | "land" => drop(paused.ok(end, json!({})).await),
                    _ => {
                        act(&mut paused.fake.lock().vehicle);
                        for _ in 0..240 {
                            if !paused.fake.lock().vehicle.armed() {
                                break;
                            }
                            paused.pass(1.0).await;
                        }
                    }
                }
                assert!(!paused.fake.lock().vehicle.armed(), "{what}\n{}", paused.story());
                paused.pass(3.0).await;
                paused.fleet.resume().expect("no pilot flies");
                paused.ok("arm", json!({})).await;
                paused.ok("takeoff", json!({"alt_m": 3})).await;
                paused.ok("turn_ccw", json!({"deg": 20})).await;
            });
        }
    }
}
