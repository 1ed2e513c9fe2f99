//! Random missions of five flights: every allowed call does what it says, and after any end of a flight the next one
//! begins. At seeded moments a pilot takes over, a stop comes while the vehicle may accelerate, or the link is lost; the
//! mission goes on after it. Also emergency stops at random instants: the vehicle holds nearby and does not land.
//!
//! On virtual time, with all quirks of real PX4. `MISSIONS` and `STOPS` set the numbers, `DRONE_SEED` replays one seed.
use std::time::Duration;

use ovos_toolbox_sdk::serde_json::{Value, json};
use px4_sim::geo::{difference, horizontal, length};
use px4_sim::log::{Cause, What};
use px4_sim::{Home, Mode, Quirks, Vehicle, World};

use crate::paused::{Paused, fly_this};

/// Codes of refusals by a guard or a limit, which are no failures.
const REFUSED: &[&str] = &[
    "fence",
    "altitude_floor",
    "altitude_ceiling",
    "too_far",
    "rotation_limit",
    "forward_limit",
    "out_of_range",
];
/// Greatest drift of a hovering vehicle, metres and metres per second: it may drift one way at a stop and the other way later.
const WANDERS_M: f64 = 1.6;
const WANDERS_MPS: f64 = 1.2;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// The seeds of this run, for one thread.
fn seeds(name: &str, default: u64) -> Vec<u64> {
    match std::env::var("DRONE_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
    {
        Some(seed) => vec![seed],
        None => (1..=number(name, default)).collect(),
    }
}

fn vehicle(seed: u64) -> Vehicle {
    let world = World {
        things: Vec::new(),
        ..World::default()
    };
    Vehicle::new(Home::default(), Quirks::all(), world).seeded(seed)
}

/// A position, metres north and east of the simulator's home.
fn place(north: f64, east: f64, alt_m: f64) -> Value {
    let (lat, lon) = Home::default().to_global(north, east);
    json!({"lat": lat, "lon": lon, "alt_m": alt_m})
}

/// A random motion tool with its arguments.
fn motion(random: &mut fastrand::Rng) -> (&'static str, Value) {
    let cm = json!({"cm": random.u32(10..=300)});
    let (north, east) = (random.f64() * 60.0 - 30.0, random.f64() * 60.0 - 30.0);
    let height = 2.0 + random.f64() * 12.0;
    match random.u8(0..12) {
        0 => ("move_forward", cm),
        1 => ("move_left", cm),
        2 => ("move_right", cm),
        3 => ("move_up", cm),
        4 => ("move_down", cm),
        5 => ("turn_cw", json!({"deg": random.u32(1..=90)})),
        6 => ("turn_ccw", json!({"deg": random.u32(1..=90)})),
        7 => ("set_yaw", json!({"deg": random.i32(-180..=180)})),
        8 => ("hold", json!({"ms": random.u32(0..=3000)})),
        9 => (
            "goto_local",
            json!({"north_m": north / 2.0, "east_m": east / 2.0, "down_m": -height}),
        ),
        10 => ("goto_gps", place(north, east, height)),
        _ => (
            "follow_path",
            json!({"waypoints": [place(north, east, height), place(-east, north, height + 1.0)],
                   "cruise_mps": 1.0 + random.f64() * 4.0}),
        ),
    }
}

/// Causes of landings and returns that no tool requested.
fn unasked(paused: &Paused, since: f64) -> Vec<String> {
    let sim = paused.fake.lock();
    let landed = |what: &What| {
        matches!(
            what,
            What::Mode {
                to: Mode::Land | Mode::Return,
                ..
            }
        )
    };
    let entries = sim.vehicle.log.since(0).filter(|entry| entry.t >= since);
    entries
        .filter(|entry| landed(&entry.what))
        .map(|entry| format!("{:.1} {:?}", entry.t, entry.what))
        .collect()
}

async fn grounded(paused: &Paused, what: &str) {
    for _ in 0..200 {
        if !paused.fake.lock().vehicle.armed() {
            // Mode and armed state are reported once a second.
            paused.pass(2.5).await;
            return;
        }
        paused.pass(1.0).await;
    }
    panic!("{what}: it never came down\n{}", paused.story());
}

/// One flight from `arm` to the ground.
async fn flight(paused: &Paused, random: &mut fastrand::Rng, what: &str) {
    paused.ok("arm", json!({})).await;
    paused
        .ok("takeoff", json!({"alt_m": 1.0 + random.f64() * 9.0}))
        .await;
    let mut began = paused.time();
    for _ in 0..random.u32(1..5) {
        let (tool, args) = motion(random);
        if random.u8(0..4) == 0 {
            assert_eq!(unasked(paused, began), Vec::<String>::new(), "{what}");
            disturb(paused, random, tool, args, what).await;
            began = paused.time();
            continue;
        }
        let answer = paused.fleet.call(tool, args.clone()).await;
        let refused = REFUSED.contains(&answer["code"].as_str().unwrap_or_default());
        assert!(
            answer["ok"] == true || refused,
            "{what}: {tool} {args}: {answer}\n{}",
            paused.story()
        );
        if random.bool() {
            paused.pass(random.f64() * 8.0).await;
        }
    }
    assert_eq!(unasked(paused, began), Vec::<String>::new(), "{what}");
    end(paused, random.u8(0..7), what).await;
}

/// Something happens at a seeded moment of a call. Afterwards the vehicle hovers, and is ours again.
async fn disturb(paused: &Paused, random: &mut fastrand::Rng, tool: &str, args: Value, what: &str) {
    let how = random.u8(0..3);
    let after_s = random.f64() * 6.0;
    let what = format!("{what}: {tool} {args}, disturbance {how} after {after_s:.2} s");
    let call = paused.fleet.call(tool, args);
    tokio::pin!(call);
    let early = tokio::time::timeout(Duration::from_secs_f64(after_s), &mut call).await;
    let under_way = early.is_err();
    match how {
        0 => {
            paused.fake.lock().vehicle.set_mode(Mode::Posctl, Cause::Pilot);
            let then = paused.time();
            if under_way {
                let answer = tokio::time::timeout(Duration::from_secs(10), call)
                    .await
                    .expect(&what);
                assert_eq!(
                    answer["code"],
                    "pilot_override",
                    "{what}: {answer}\n{}",
                    paused.story()
                );
            }
            paused.pass(3.0).await;
            assert_eq!(paused.mode(), Mode::Posctl, "{what}\n{}", paused.story());
            let sent = paused.commands_since(then + 0.5);
            let given_back = sent.iter().all(|command| command == "set_mode posctl");
            assert!(given_back, "{what}: {sent:?}\n{}", paused.story());
            paused.fake.lock().vehicle.set_mode(Mode::Hold, Cause::Pilot);
            paused.pass(2.5).await;
        }
        1 => stop(paused, tool, &what).await,
        _ => {
            paused.fake.lock().silent = true;
            let silence = Duration::from_secs_f64(1.0 + random.f64() * 11.0);
            let answer =
                tokio::time::timeout(silence, async { if under_way { Some(call.await) } else { None } });
            let answer = answer.await;
            paused.pass(1.0).await;
            paused.fake.lock().silent = false;
            // It is recognised again, and without setpoints it may be on its way home by then.
            paused.pass(20.0).await;
            assert!(
                paused.fake.lock().vehicle.armed(),
                "{what}: {answer:?}\n{}",
                paused.story()
            );
        }
    }
    paused.fleet.resume().expect(&what);
    let held = paused.fleet.call("hold", json!({"ms": 0})).await;
    assert_eq!(held["ok"], true, "{what}: {held}\n{}", paused.story());
    assert_eq!(paused.mode(), Mode::Hold, "{what}\n{}", paused.story());
}

/// Ends a flight on the ground.
async fn end(paused: &Paused, how: u8, what: &str) {
    let other = |act: fn(&mut Vehicle)| act(&mut paused.fake.lock().vehicle);
    match how {
        0 => drop(paused.ok("land", json!({})).await),
        1 | 2 => drop(paused.ok("rtl", json!({})).await),
        3 => {
            paused.fleet.halt(true).await.expect("it is heard");
            paused.pass(5.0).await;
            paused.fleet.resume().expect("no other party flies");
            paused.ok("land", json!({})).await;
        }
        4 => other(|vehicle| vehicle.failsafe(Mode::Return, "Failsafe activated")),
        5 => other(|vehicle| vehicle.failsafe(Mode::Land, "Failsafe activated")),
        _ => other(|vehicle| {
            vehicle.set_mode(Mode::Posctl, Cause::Pilot);
            vehicle.set_mode(Mode::Land, Cause::Pilot);
        }),
    }
    grounded(paused, what).await;
    paused.fleet.resume().expect("no other party flies");
}

fn missions(share: u64, of: u64) {
    for seed in seeds("MISSIONS", 40)
        .into_iter()
        .filter(|seed| seed % of == share)
    {
        fly_this(json!({}), vehicle(seed), |paused| async move {
            let mut random = fastrand::Rng::with_seed(seed);
            for number in 1..=5 {
                flight(
                    &paused,
                    &mut random,
                    &format!("DRONE_SEED={seed}, flight {number}"),
                )
                .await;
            }
        });
    }
}

#[test]
fn five_flights_in_a_row_one_half() {
    missions(0, 2);
}

#[test]
fn five_flights_in_a_row_other_half() {
    missions(1, 2);
}

/// Set speed of a tool's flight, metres per second: PX4 flies to the first waypoint of a path at its own speed.
fn set_mps(tool: &str) -> f64 {
    match tool {
        "goto_gps" | "follow_path" => 5.0,
        "goto_local" => 1.5,
        _ => 1.0,
    }
}

/// Greatest stopping distance at this speed, metres: the vehicle may become up to 2.2 m/s faster first. A repeated brake
/// holds where the vehicle has drifted to, and from there it drifts again.
fn stops_within(mps: f64, set_mps: f64, brakes: usize) -> f64 {
    let mps = (mps + 2.2).min(set_mps).max(mps);
    1.25 * (0.45 * mps + mps * mps / 3.3) + WANDERS_M * brakes as f64
}

/// How many brakes the vehicle was sent since then.
fn brakes(paused: &Paused, since: f64) -> usize {
    let sim = paused.fake.lock();
    let entries = sim.vehicle.log.since(0).filter(|entry| entry.t >= since);
    entries
        .filter(|entry| matches!(&entry.what, What::Command { name, .. } if name.as_str() == "set_mode hold"))
        .count()
}

async fn stopped(paused: &Paused, random: &mut fastrand::Rng, what: &str) {
    paused.take_off(5.0).await;
    let (tool, args) = match random.u8(0..3) {
        0 => motion(random),
        1 => ("goto_gps", place(40.0 + random.f64() * 40.0, 0.0, 8.0)),
        _ => (
            "follow_path",
            json!({"waypoints": [place(20.0, 0.0, 8.0), place(60.0, 0.0, 8.0)], "cruise_mps": 5.0}),
        ),
    };
    let what = format!("{what}: {tool} {args}");
    {
        let call = paused.fleet.call(tool, args);
        // Half of the stops come while it accelerates.
        let most = if random.bool() { 2.5 } else { 15.0 };
        let after = Duration::from_secs_f64(0.1 + random.f64() * most);
        let _ = tokio::time::timeout(after, call).await;
    }
    stop(paused, tool, &what).await;
    assert_eq!(paused.mode(), Mode::Hold, "{what}\n{}", paused.story());
    paused.fleet.resume().expect("no other party flies");
    paused.ok("rtl", json!({})).await;
    paused.ok("arm", json!({})).await;
}

/// An emergency stop out of a call of this tool: the vehicle goes on within its bound, comes to rest and does not land.
async fn stop(paused: &Paused, tool: &str, what: &str) {
    let (from, fast, began) = {
        let body = *paused.fake.lock().vehicle.body();
        (body.position, length(body.velocity), paused.time())
    };
    paused.fleet.halt(true).await.expect("it is heard");
    let mut farthest: f64 = 0.0;
    let mut fastest: f64 = 0.0;
    for tick in 0..500 {
        paused.pass(0.05).await;
        let body = *paused.fake.lock().vehicle.body();
        farthest = farthest.max(horizontal(difference(body.position, from)));
        if tick > 240 {
            fastest = fastest.max(length(body.velocity));
        }
    }
    assert!(
        farthest <= stops_within(fast, set_mps(tool), brakes(paused, began)),
        "{what}: {farthest:.1} m on from {fast:.1} m/s\n{}",
        paused.story()
    );
    assert!(
        fastest < WANDERS_MPS,
        "{what}: {fastest:.1} m/s long after the stop\n{}",
        paused.story()
    );
    assert_eq!(
        unasked(paused, began),
        Vec::<String>::new(),
        "{what}\n{}",
        paused.story()
    );
}

fn stops(share: u64, of: u64) {
    for seed in seeds("STOPS", 30).into_iter().filter(|seed| seed % of == share) {
        fly_this(json!({}), vehicle(seed), |paused| async move {
            let mut random = fastrand::Rng::with_seed(seed);
            stopped(&paused, &mut random, &format!("DRONE_SEED={seed}")).await;
        });
    }
}

#[test]
fn an_emergency_stop_holds_near_and_does_not_land_one_half() {
    stops(0, 2);
}

#[test]
fn an_emergency_stop_holds_near_and_does_not_land_other_half() {
    stops(1, 2);
}
