//! The origin of a mode change: PX4 itself changes to Hold after a take-off and at the end of a path; anywhere else the
//! same change is a failsafe's or a ground station's. On virtual time.
use ovos_toolbox_sdk::serde_json::{Value, json};
use px4_sim::Mode;
use px4_sim::log::Cause;

use crate::fake_mavsdk::Sim;
use crate::paused::{Paused, airborne, empty, fly};

/// Latitude in degrees, this many metres north of the simulator's home.
fn north(metres: f64) -> f64 {
    47.397_742 + (metres / 6_371_000.0).to_degrees()
}

/// Waypoints at 6 m height, at these metres north of home.
fn path(metres: &[f64]) -> Value {
    let point = |metres: &f64| json!({"lat": north(*metres), "lon": 8.545_594, "alt_m": 6});
    json!({"waypoints": metres.iter().map(point).collect::<Vec<_>>()})
}

fn hold(sim: &mut Sim) {
    sim.vehicle.failsafe(Mode::Hold, "Failsafe activated");
}

/// The call ended with a takeover, and nothing was sent to the vehicle after that.
async fn left_alone(paused: &Paused, answer: &Value, then: f64) {
    assert_eq!(answer["code"], "failsafe", "{answer}\n{}", paused.story());
    let msg = answer["msg"].as_str().unwrap();
    assert!(
        msg.contains("HOLD") && msg.contains("Failsafe activated"),
        "{answer}"
    );
    paused.pass(6.0).await;
    let sent = paused.commands_since(then + 0.01);
    assert!(sent.is_empty(), "then it sent {sent:?}\n{}", paused.story());
    let refused = paused.fleet.call("move_up", json!({"cm": 50})).await;
    assert_eq!(refused["code"], "failsafe", "{refused}");
}

#[test]
fn a_hold_in_the_middle_of_a_path_is_an_override() {
    airborne(json!({}), 5.0, |paused| async move {
        let at_last = |sim: &Sim| sim.vehicle.body().position[0] > 40.0;
        let (answer, then) = paused
            .in_the_middle("follow_path", path(&[20.0, 60.0]), at_last, hold)
            .await;
        left_alone(&paused, &answer, then).await;
    });
    // The path crosses its last waypoint early.
    airborne(json!({}), 5.0, |paused| async move {
        let passing = |sim: &Sim| sim.vehicle.body().position[0] > 19.0;
        let (answer, then) = paused
            .in_the_middle("follow_path", path(&[20.0, 40.0, 20.0]), passing, hold)
            .await;
        left_alone(&paused, &answer, then).await;
    });
}

#[test]
fn a_hold_at_a_quarter_of_a_take_off_is_an_override() {
    fly(json!({}), empty(), |paused| async move {
        paused.ok("arm", json!({})).await;
        let low = |sim: &Sim| sim.vehicle.height() > 2.5;
        let (answer, then) = paused
            .in_the_middle("takeoff", json!({"alt_m": 10}), low, hold)
            .await;
        left_alone(&paused, &answer, then).await;
    });
}

#[test]
fn the_hold_at_the_end_is_px4s_own() {
    for alt_m in [1.0, 3.0, 20.0] {
        fly(json!({}), empty(), |paused| async move {
            paused.take_off(alt_m).await;
            paused.ok("follow_path", path(&[5.0, 12.0])).await;
            paused.ok("follow_path", path(&[20.0, 12.0, 20.0, 12.0])).await;
            paused.ok("move_up", json!({"cm": 50})).await;
        });
    }
}

/// The mode comes once a second: the end of a path is heard up to a second after it.
#[test]
fn a_path_may_follow_another_at_once() {
    airborne(json!({}), 5.0, |paused| async move {
        for number in 0..12 {
            let mut way = path(&[if number % 2 == 0 {
                12.0
            } else {
                0.3 * f64::from(number)
            }]);
            way["cruise_mps"] = json!(4.0);
            paused.ok("follow_path", way).await;
        }
    });
}

#[test]
fn a_return_that_is_made_a_landing_far_away_is_an_override() {
    for (far, expected) in [(60.0, "pilot_override"), (4.0, "")] {
        airborne(json!({}), 6.0, |paused| async move {
            paused
                .ok(
                    "goto_gps",
                    json!({"lat": north(70.0), "lon": 8.545_594, "alt_m": 6}),
                )
                .await;
            let there =
                |sim: &Sim| sim.vehicle.mode() == Mode::Return && sim.vehicle.body().position[0] < far;
            let land = |sim: &mut Sim| {
                sim.vehicle.set_mode(Mode::Land, Cause::GroundStation);
            };
            let (answer, _) = paused.in_the_middle("rtl", json!({}), there, land).await;
            assert_eq!(
                answer["code"].as_str().unwrap_or_default(),
                expected,
                "{far}: {answer}"
            );
            assert_eq!(answer["ok"], expected.is_empty(), "{far}: {answer}");
        });
    }
}

#[test]
fn a_return_to_somewhere_else_is_not_home() {
    fly(json!({}), empty(), |paused| async move {
        paused.ok("arm", json!({})).await;
        {
            // A return to another position than the one where the toolbox saw it take off, such as a rally point.
            let mut sim = paused.fake.lock();
            sim.vehicle.teleport([40.0, 0.0, 0.0], 0.0);
            sim.vehicle.disarm(false, Cause::GroundStation);
            sim.vehicle.arm();
        }
        paused.ok("takeoff", json!({"alt_m": 5})).await;
        let answer = paused.fleet.call("rtl", json!({})).await;
        assert_eq!(answer["code"], "not_reached", "{answer}");
        let msg = answer["msg"].as_str().unwrap();
        assert!(
            msg.contains("landed and disarmed") && msg.contains("40 m"),
            "{answer}"
        );
    });
}

/// The words of the vehicle say too little: PX4 says the same of a return that a user has selected. What it reports as the
/// intended mode tells the two apart.
#[test]
fn a_failsafe_is_named_as_that_and_a_ground_station_is_not() {
    type Happens = fn(&mut Sim);
    let rows: [(Happens, &str, &str, bool); 4] = [
        (
            |sim| sim.vehicle.failsafe(Mode::Return, "RTL: start return"),
            "failsafe",
            "a failsafe of the vehicle changed the flight mode to RETURN_TO_LAUNCH",
            true,
        ),
        (
            |sim| {
                sim.vehicle.set_mode(Mode::Return, Cause::GroundStation);
                sim.vehicle.say(6, "RTL: start return");
            },
            "pilot_override",
            "the flight mode changed to RETURN_TO_LAUNCH, and not by our command",
            true,
        ),
        (
            |sim| sim.vehicle.failsafe(Mode::Land, "Failsafe activated: battery"),
            "failsafe",
            "said last: Failsafe activated: battery",
            true,
        ),
        // A vehicle that does not report intentions: its words count.
        (
            |sim| sim.vehicle.failsafe(Mode::Land, "Failsafe activated: battery"),
            "failsafe",
            "said last: Failsafe activated: battery",
            false,
        ),
    ];
    for (happens, code, part, intends) in rows {
        airborne(json!({}), 5.0, |paused| async move {
            if !intends {
                paused.fake.lock().modes_every_s = None;
            }
            let far = json!({"north_m": 40, "east_m": 0, "down_m": -6});
            let under_way = |sim: &Sim| sim.vehicle.body().position[0] > 10.0;
            let (answer, _) = paused.in_the_middle("goto_local", far, under_way, happens).await;
            let msg = answer["msg"].as_str().unwrap();
            assert!(answer["code"] == code && msg.contains(part), "{answer}");
            let state = paused.fleet.call("vehicle_state", json!({})).await;
            let safety = &state["safety"];
            assert_eq!(safety["failsafe"].is_null(), code != "failsafe", "{state}");
            assert_eq!(safety["pilot_override"].is_null(), code == "failsafe", "{state}");
            // No pilot flies it: a resume is possible, and the refusal says so.
            let refused = paused.fleet.call("move_up", json!({"cm": 50})).await;
            assert!(
                refused["msg"].as_str().unwrap().contains("possible now"),
                "{refused}"
            );
        });
    }
}

/// Which of the two cases of a takeover it is: one that PX4 has ended itself, or one that lasts.
#[test]
fn a_refusal_says_whether_a_resume_is_possible() {
    for (ended, part) in [(true, "possible now"), (false, "while a pilot flies (mode")] {
        airborne(json!({}), 5.0, |paused| async move {
            let far = json!({"north_m": 40, "east_m": 0, "down_m": -6});
            let under_way = |sim: &Sim| sim.vehicle.body().position[0] > 10.0;
            let pilot = |sim: &mut Sim| {
                sim.vehicle.set_mode(Mode::Posctl, Cause::Pilot);
            };
            let (answer, _) = paused.in_the_middle("goto_local", far, under_way, pilot).await;
            assert_eq!(answer["code"], "pilot_override", "{answer}");
            if ended {
                paused.pass(3.0).await;
                paused.fake.lock().vehicle.set_mode(Mode::Hold, Cause::Pilot);
            }
            paused.pass(1.5).await;
            let refused = paused.fleet.call("move_up", json!({"cm": 50})).await;
            assert!(refused["msg"].as_str().unwrap().contains(part), "{refused}");
            assert_eq!(paused.fleet.resume().is_ok(), ended, "{refused}");
        });
    }
}

#[test]
fn only_multicopters_are_armed() {
    use px4_sim::params::Param;
    for (kind, code, part) in [
        (
            1,
            "wrong_vehicle",
            "multicopters only, and the vehicle is a fixed wing (MAV_TYPE 1)",
        ),
        (22, "wrong_vehicle", "a VTOL aircraft"),
        (10, "wrong_vehicle", "a ground vehicle"),
        (13, "", ""),
    ] {
        let mut vehicle = px4_sim::Vehicle::new(px4_sim::Home::default(), crate::paused::steady(), empty());
        vehicle.params.set("MAV_TYPE", Param::Int(kind)).unwrap();
        crate::paused::fly_this(json!({}), vehicle, |paused| async move {
            for (tool, args) in [("arm", json!({})), ("takeoff", json!({"alt_m": 5, "arm": true}))] {
                let answer = paused.fleet.call(tool, args).await;
                assert_eq!(
                    answer["code"].as_str().unwrap_or_default(),
                    code,
                    "{tool}: {answer}"
                );
                assert!(answer["msg"].as_str().unwrap().contains(part), "{tool}: {answer}");
            }
            assert_eq!(paused.fake.lock().vehicle.armed(), code.is_empty());
        });
    }
}
