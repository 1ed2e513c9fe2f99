//! The whole adapter on a serial line whose answers are late, doubled, cut or not its own, in real time.
//!
//! `LATE_RUNS=120` runs as many; `make proofs` does. A bus's thread that panics ends this process.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use feetech_sim::{Delivery, Lateness, Line, register as r};
use robot::adapter::Estop;
use robot::step::Step;
use robot::subsystem::Subsystem;
use serde_json::{Value, json};

use crate::servos::{Body, Robot, Taken, action, robot_of, run};
use crate::{drive, to};

const ARMS: [Subsystem; 2] = [Subsystem::LeftArm, Subsystem::RightArm];
/// No joint may move so long after a stop; the rest is for a machine that runs other tests, too. The greatest is printed.
const AT_REST: Duration = Duration::from_millis(500);

/// Steps per second of a joint that goes back to where it was measured at the stop.
const SLOWEST: f64 = 20.0;

/// Every kind of lateness, from 1 to 200 ms.
fn late(seed: u64, random: &mut fastrand::Rng) -> Lateness {
    let by = Duration::from_millis(random.u64(1..=200));
    match seed % 6 {
        0 => Lateness::Always(by),
        1 => Lateness::UpTo(by),
        2 => Lateness::InTurn {
            by,
            answers: random.u32(1..20),
        },
        3 => Lateness::Bursts {
            by,
            of: random.u32(1..6),
            every: random.u32(6..30),
        },
        4 => Lateness::Stalls {
            lasting: by,
            every: Duration::from_millis(random.u64(210..800)),
        },
        // As the emulator was that brought the bus down.
        _ => Lateness::Always(Duration::from_millis(random.u64(42..=55))),
    }
}

fn lines(body: &Body) -> [(&Line, u8); 2] {
    [(&body.left, 11), (&body.right, 8)]
}

/// Degrees by steps of each servo of the arms.
type Scales = BTreeMap<String, (f64, f64)>;

async fn status(robot: &Robot, arm: Subsystem) -> Option<Value> {
    let asked = run(robot, arm, Step::MotorStatus { motor_id: None }).await;
    asked.ok().map(|output| json!(output.data)["motors"].clone())
}

fn place<'b>(body: &'b Body, name: &str) -> (&'b Line, u8) {
    let (bus, id) = name.split_once(':').unwrap();
    let line = if bus == "left" { &body.left } else { &body.right };
    (line, id.parse().unwrap())
}

fn steps(body: &Body, name: &str) -> f64 {
    let (line, id) = place(body, name);
    line.servo(id, |servo| servo.position()).unwrap()
}

/// What a servo's degrees are in steps, from two positions that are read in good weather.
async fn scales(body: &Body, robot: &Robot) -> Scales {
    let mut scales = Scales::new();
    for arm in ARMS {
        let mut read = Vec::new();
        for by in [0.0, 500.0] {
            let mut at = BTreeMap::new();
            let before: Vec<String> = (1..=6)
                .map(|id| format!("{}:{id}", if arm == ARMS[0] { "left" } else { "right" }))
                .collect();
            for name in &before {
                let (line, id) = place(body, name);
                line.servo(id, |servo| servo.push(by)).unwrap();
            }
            let motors = status(robot, arm).await.unwrap();
            for name in before {
                let degrees = motors[&name]["position"].as_f64().unwrap();
                at.insert(name.clone(), (degrees, steps(body, &name)));
            }
            read.push(at);
        }
        for (name, (degrees, at)) in &read[0] {
            let (degrees2, at2) = read[1][name];
            scales.insert(
                name.clone(),
                (
                    (degrees2 - degrees) / (at2 - at),
                    degrees - at * (degrees2 - degrees) / (at2 - at),
                ),
            );
        }
    }
    scales
}

#[derive(Debug, Default)]
struct Shown {
    runs: u32,
    read: u32,
    given_up: u32,
    confirmed: u32,
    unconfirmed: u32,
    /// From the call of the stop until nothing moved any more.
    longest: Duration,
}

/// Reads until it is told to end, and compares what counts as measured with the servos.
async fn read(body: &Body, robot: &Robot, scales: &Scales, seed: u64, end: Instant, shown: &mut Shown) {
    while Instant::now() < end {
        for arm in ARMS {
            let before: BTreeMap<&String, f64> =
                scales.keys().map(|name| (name, steps(body, name))).collect();
            let Some(motors) = status(robot, arm).await else {
                shown.given_up += 1;
                continue;
            };
            for (name, told) in motors.as_object().unwrap() {
                let (_, id) = place(body, name);
                assert_eq!(told["temperature"], 20 + id, "seed {seed}: {name}: {told}");
                let voltage = told["voltage"].as_f64().unwrap();
                assert!(
                    (voltage - f64::from(70 + id) / 10.0).abs() < 1e-9,
                    "seed {seed}: {name}: {told}"
                );
                let (scale, offset) = scales[name];
                let now = steps(body, name);
                let (low, high) = (before[name].min(now) - 12.0, before[name].max(now) + 12.0);
                let measured = (told["position"].as_f64().unwrap() - offset) / scale;
                assert!(
                    (low..=high).contains(&measured),
                    "seed {seed}: {name} was between {low} and {high}, and {measured} was measured"
                );
                shown.read += 1;
            }
        }
    }
}

fn fastest(body: &Body) -> f64 {
    let speeds = lines(body)
        .into_iter()
        .flat_map(|(line, last)| (1..=last).filter_map(|id| line.servo(id, |servo| servo.speed().abs())));
    speeds.fold(0.0, f64::max)
}

async fn one(seed: u64, shown: &mut Shown) {
    let mut random = fastrand::Rng::with_seed(seed);
    let body = Body::new();
    for (line, last) in lines(&body) {
        for id in 1..=last {
            line.servo(id, |servo| {
                servo.set_byte(r::TEMPERATURE, 20 + id);
                servo.set_byte(r::VOLTAGE, 70 + id);
            })
            .unwrap();
        }
    }
    let mut config = body.section();
    let scales = {
        let (patient, _) = robot_of(&config, None);
        patient.connect().await.unwrap();
        let scales = scales(&body, &patient).await;
        patient.close().await;
        scales
    };
    config["answer_ms"] = serde_json::json!(20);
    let estop = random.choice([Estop::Hold, Estop::TorqueOff]).unwrap();
    let (robot, notices) = robot_of(&config, Some(estop));
    let _ = robot.connect().await;
    for (line, _) in lines(&body) {
        let mut percent = || if random.bool() { random.u32(1..15) } else { 0 };
        let (doubled, cut, foreign) = (percent(), percent(), percent());
        let delivery = Delivery::new(late(seed, &mut random), seed);
        line.deliver(delivery.doubled(doubled).cut(cut).foreign(foreign));
    }
    let taken = Taken::default();
    let control = taken.control();
    let goals = [(); 2].map(|()| {
        to(&[
            random.f64() * 120.0 - 60.0,
            -45.0,
            60.0 + random.f64() * 60.0,
            45.0,
            0.0,
            20.0,
        ])
    });
    let moves = ARMS
        .iter()
        .zip(goals)
        .map(|(arm, goal)| action(*arm, goal))
        .chain([action(Subsystem::Base, drive(0.1, 0.0, 0.0, 60_000))]);
    let moves: Vec<_> = moves.collect();
    let end = Instant::now() + Duration::from_millis(random.u64(50..1000));
    let moving = async {
        let all = moves.iter().map(|one| robot.execute(one, &control));
        tokio::time::timeout_at(end.into(), futures_util::future::join_all(all)).await
    };
    let (_, ()) = tokio::join!(moving, read(&body, &robot, &scales, seed, end, shown));
    taken.cancel();
    let stopped_at = Instant::now();
    match robot.halt(&Subsystem::EACH, true) {
        Ok(()) => shown.confirmed += 1,
        Err(error) => {
            let message = error.to_string();
            assert!(
                message.contains("answer too slowly") || message.contains("the stop is sent next"),
                "seed {seed}: {message}"
            );
            shown.unconfirmed += 1;
        }
    }
    assert!(
        stopped_at.elapsed() < AT_REST,
        "seed {seed}: the halt took {:?}",
        stopped_at.elapsed()
    );
    loop {
        let fast = fastest(&body);
        if fast <= SLOWEST {
            break;
        }
        assert!(
            stopped_at.elapsed() < AT_REST,
            "seed {seed}: {fast} steps/s {:?} after the stop ({estop:?})",
            stopped_at.elapsed()
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    shown.longest = shown.longest.max(stopped_at.elapsed());
    let before: Vec<(String, f64)> = scales
        .keys()
        .map(|name| (name.clone(), steps(&body, name)))
        .collect();
    // In better weather it is there again, and nothing has moved meanwhile.
    for (line, _) in lines(&body) {
        line.deliver(Delivery::default());
    }
    robot.reset().unwrap();
    let back = Instant::now() + Duration::from_secs(30);
    while status(&robot, ARMS[0])
        .await
        .is_none_or(|motors| motors.as_object().unwrap().len() < 6)
    {
        assert!(
            Instant::now() < back,
            "seed {seed}: it does not come back: {:?}",
            notices.all()
        );
    }
    for (name, at) in before {
        // Back to where it was measured at the stop, a degree or two away.
        let now = steps(&body, &name);
        assert!(
            (now - at).abs() < 40.0,
            "seed {seed}: {name} went from {at} to {now} after the stop"
        );
    }
    robot.close().await;
    shown.runs += 1;
}

#[test]
fn whatever_is_late_nothing_wrong_is_measured_and_every_stop_ends_the_motion() {
    let runs: u64 = std::env::var("LATE_RUNS").map_or(6, |runs| runs.parse().unwrap());
    let mut shown = Shown::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    for seed in 0..runs {
        runtime.block_on(one(seed, &mut shown));
    }
    assert!(
        shown.read > 0 && shown.confirmed + shown.unconfirmed > 0,
        "{shown:?}"
    );
    println!("{shown:?}");
}
