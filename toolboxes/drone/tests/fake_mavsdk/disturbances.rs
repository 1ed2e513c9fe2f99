//! Disturbances at seeded instants of every motion tool: the call ends soon and gives the reason, and after a takeover
//! nothing is sent to the vehicle. On virtual time.
use std::time::Duration;

use ovos_toolbox_sdk::serde_json::{Value, json};
use px4_sim::log::Cause;
use px4_sim::{Mode, World};

use crate::fake_mavsdk::Sim;
use crate::paused::{Paused, fly};

/// The motion tools, each of which flies for some seconds.
fn moving() -> Vec<(&'static str, Value)> {
    vec![
        ("move_forward", json!({"cm": 300})),
        ("move_left", json!({"cm": 300})),
        ("move_up", json!({"cm": 300})),
        ("turn_cw", json!({"deg": 90})),
        ("set_yaw", json!({"deg": 175})),
        ("goto_local", json!({"north_m": 12, "east_m": -6, "down_m": -6})),
        ("goto_gps", json!({"lat": 47.397_85, "lon": 8.545_7, "alt_m": 6})),
        (
            "follow_path",
            json!({"waypoints": [{"lat": 47.397_85, "lon": 8.545_594, "alt_m": 6}, {"lat": 47.397_85, "lon": 8.545_7, "alt_m": 6}]}),
        ),
        ("scan", json!({"object": "unicorn"})),
    ]
}

/// A disturbance, and the codes with which a call may end because of it.
struct Disturbance {
    name: &'static str,
    happen: fn(&mut Sim),
    codes: &'static [&'static str],
    /// Whether commands are forbidden afterwards.
    hands_off: bool,
}

const DISTURBANCES: &[Disturbance] = &[
    Disturbance {
        name: "the pilot takes over",
        happen: |sim| {
            sim.vehicle.set_mode(Mode::Posctl, Cause::Pilot);
        },
        codes: &["pilot_override"],
        hands_off: true,
    },
    Disturbance {
        name: "a ground station lands it",
        happen: |sim| {
            sim.vehicle.set_mode(Mode::Land, Cause::GroundStation);
        },
        codes: &["pilot_override"],
        hands_off: true,
    },
    Disturbance {
        name: "the autopilot returns",
        happen: |sim| sim.vehicle.failsafe(Mode::Return, "Failsafe activated"),
        codes: &["failsafe"],
        hands_off: true,
    },
    Disturbance {
        name: "the pilot kills the motors",
        happen: |sim| {
            sim.vehicle.disarm(true, Cause::Pilot);
        },
        codes: &["pilot_override"],
        hands_off: true,
    },
    Disturbance {
        name: "the position is lost",
        happen: |sim| sim.vehicle.health.gps = false,
        codes: &["failsafe", "stale_telemetry", "no_local_position"],
        hands_off: false,
    },
    Disturbance {
        name: "the link is lost",
        happen: |sim| sim.silent = true,
        codes: &["link_lost", "link_down", "stale_telemetry"],
        hands_off: false,
    },
];

/// Longest duration of a call after a disturbance, vehicle seconds: one of heartbeats, three of silence, and the
/// slowest answer over a lost link.
const SOON_S: f64 = 8.0;

async fn check(paused: &Paused, tool: &str, args: &Value, disturbance: &Disturbance, delay: f64) {
    paused.take_off(5.0).await;
    let call = paused.fleet.call(tool, args.clone());
    tokio::pin!(call);
    let early = tokio::time::timeout(Duration::from_secs_f64(delay), &mut call).await;
    if early.is_ok() {
        // The call ended before that instant.
        return;
    }
    (disturbance.happen)(&mut paused.fake.lock());
    let when = paused.time();
    let what = format!("{tool} {args}, {} after {delay:.2} s", disturbance.name);
    let ended = tokio::time::timeout(Duration::from_secs_f64(SOON_S), &mut call).await;
    let answer = ended.unwrap_or_else(|_| panic!("{what}: no end within {SOON_S} s\n{}", paused.story()));
    let code = answer["code"].as_str().unwrap_or_default();
    // A call that was nearly done may succeed before the disturbance can be known.
    let took = paused.time() - when;
    let well = answer["ok"] == true && took < 1.5;
    assert!(
        well || disturbance.codes.contains(&code),
        "{what}: {answer}\n{}",
        paused.story()
    );
    if disturbance.hands_off {
        let known_at = paused.time();
        paused.pass(6.0).await;
        let sent = paused.commands_since(known_at + 0.01);
        assert!(
            sent.is_empty(),
            "{what}: then it sent {sent:?}\n{}",
            paused.story()
        );
        // mavsdk_server itself repeats the last setpoint while the mode is offboard and for three more seconds.
        let repeated = paused.setpoints_since(known_at + 4.0);
        assert!(
            repeated == 0 || paused.mode() == Mode::Offboard,
            "{what}: set points are still sent"
        );
        if !well {
            let refused = paused.fleet.call("move_up", json!({"cm": 50})).await;
            assert_eq!(refused["ok"], false, "{what}: {refused}");
        }
    }
}

fn disturb(disturbance: &'static Disturbance) {
    let seed = std::env::var("DRONE_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(7);
    let mut random = fastrand::Rng::with_seed(seed);
    for (tool, args) in moving() {
        for _ in 0..3 {
            let delay = random.f64() * 4.0;
            eprintln!("seed {seed}: {} in {tool} after {delay:.2} s", disturbance.name);
            let world = World {
                things: Vec::new(),
                ..World::default()
            };
            let args = args.clone();
            fly(json!({}), world, |paused| async move {
                check(&paused, tool, &args, disturbance, delay).await;
            });
        }
    }
}

#[test]
fn a_pilot_keeps_what_he_took() {
    disturb(&DISTURBANCES[0]);
}

#[test]
fn a_ground_station_keeps_what_it_took() {
    disturb(&DISTURBANCES[1]);
}

#[test]
fn a_failsafe_is_left_alone() {
    disturb(&DISTURBANCES[2]);
}

#[test]
fn killed_motors_stay_off() {
    disturb(&DISTURBANCES[3]);
}

#[test]
fn a_lost_position_ends_the_call() {
    disturb(&DISTURBANCES[4]);
}

#[test]
fn a_lost_link_ends_the_call() {
    disturb(&DISTURBANCES[5]);
}

/// What happens while the vehicle brakes for a stop. Who took it over keeps it, and what it does otherwise is a rest.
#[test]
fn a_disturbance_of_a_stop_is_no_reason_to_fly() {
    let seed = 23;
    let mut random = fastrand::Rng::with_seed(seed);
    for disturbance in DISTURBANCES {
        for (tool, args) in moving().into_iter().skip(5).take(3) {
            for emergency in [false, true] {
                let (before_s, delay_s) = (1.0 + random.f64() * 3.0, random.f64() * 2.0);
                let what = format!(
                    "{}, {delay_s:.2} s after a stop (emergency {emergency}) of {tool} after {before_s:.2} s",
                    disturbance.name
                );
                eprintln!("{what}");
                let args = args.clone();
                fly(
                    json!({}),
                    World {
                        things: Vec::new(),
                        ..World::default()
                    },
                    |paused| async move {
                        paused.take_off(5.0).await;
                        let call = paused.fleet.call(tool, args);
                        tokio::pin!(call);
                        let early = tokio::time::timeout(Duration::from_secs_f64(before_s), &mut call).await;
                        assert!(early.is_err(), "{what}: {early:?}");
                        paused.fleet.halt(emergency).await.expect("sent");
                        assert_eq!(call.await["code"], "stopped", "{what}");
                        paused.pass(delay_s).await;
                        (disturbance.happen)(&mut paused.fake.lock());
                        // The modes are reported every 20 ms, the arming once a second.
                        paused.pass(1.2).await;
                        let (known, mode) = (paused.time(), paused.mode());
                        paused.pass(25.0).await;
                        let sent = paused.commands_since(known);
                        let rests = ["set_mode hold", "reposition", "land"];
                        assert!(
                            if disturbance.hands_off {
                                sent.is_empty() && (paused.mode() == mode || mode != Mode::Posctl)
                            } else {
                                sent.iter().all(|name| rests.contains(&name.as_str()))
                            },
                            "{what}: then it sent {sent:?} in {mode:?}\n{}",
                            paused.story()
                        );
                        let moves = px4_sim::geo::length(paused.fake.lock().vehicle.body().velocity);
                        let mode = paused.mode();
                        assert!(
                            moves < 0.5 || mode == Mode::Return || mode == Mode::Land,
                            "{what}: {moves:.1} m/s in {mode:?}\n{}",
                            paused.story()
                        );
                    },
                );
            }
        }
    }
}
