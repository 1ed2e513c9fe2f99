//! Seeded runs of a bus whose answers are late, doubled, cut or not its own, in time of their own.
//!
//! `SERVO_RUNS=1000` runs a thousand of them; `make proofs` does.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test panics")]

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use feetech_sim::{Bus, Delivery, Lateness, Servo, register as r};

use super::rest::{Rest, settle};
use super::torque::{SLOWEST, ease, power};
use crate::servo::{Exchange, LISTENS, Port, Register, ServoError, Wire};

/// A bus and its clock.
struct World {
    bus: Bus,
    now: Instant,
    /// When the robot is stopped.
    stop_at: Instant,
    hurry: Arc<AtomicBool>,
}

impl World {
    fn pass(&mut self, to: Instant) {
        self.now = self.now.max(to);
        if self.now >= self.stop_at {
            self.hurry.store(true, Ordering::SeqCst);
        }
    }

    fn servo<R>(&mut self, id: u8, look: impl FnOnce(&mut Servo) -> R) -> R {
        look(self.bus.servo(id, self.now).unwrap())
    }

    fn positions(&mut self, ids: &[u8]) -> Vec<f64> {
        ids.iter()
            .map(|id| self.servo(*id, |servo| servo.position()))
            .collect()
    }

    /// The fastest joint with power, in steps a second.
    fn fastest(&mut self, ids: &[u8]) -> f64 {
        let speeds = ids.iter().map(|id| self.servo(*id, |servo| servo.speed().abs()));
        speeds.fold(0.0, f64::max)
    }
}

#[derive(Clone)]
struct Line(Arc<Mutex<World>>);

impl Line {
    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }
}

impl Port for Line {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut world = self.world();
        // Ten bits a byte at 1 Mbit/s.
        let sent = world.now + Duration::from_micros(10 * u64::try_from(bytes.len()).unwrap());
        world.pass(sent);
        world.bus.hear(bytes, sent);
        Ok(())
    }

    fn take(&mut self, until: Instant) -> io::Result<Vec<u8>> {
        let mut world = self.world();
        let due = world.bus.next_due().filter(|due| *due <= until);
        world.pass(due.unwrap_or(until));
        let now = world.now;
        Ok(world.bus.say(now))
    }

    fn clear(&mut self) -> io::Result<()> {
        let mut world = self.world();
        let now = world.now;
        drop(world.bus.say(now));
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        Ok(())
    }

    fn now(&self) -> Instant {
        self.world().now
    }
}

/// What the runs have shown.
#[derive(Debug, Default)]
struct Tally {
    runs: u32,
    read: u32,
    given_up: u32,
    written: u32,
    confirmed: u32,
    unconfirmed: u32,
    /// From the stop until the last joint was told to slow down or to let go.
    longest: Duration,
}

/// How late: every kind, from 1 to 200 ms.
fn late(random: &mut fastrand::Rng) -> Lateness {
    let by = Duration::from_millis(random.u64(1..=200));
    match random.u8(..7) {
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
        5 => Lateness::Always(Duration::from_millis(random.u64(42..=55))),
        _ => Lateness::Never,
    }
}

fn delivery(random: &mut fastrand::Rng, seed: u64) -> Delivery {
    let mut percent = || if random.bool() { random.u32(1..25) } else { 0 };
    let (doubled, cut, foreign) = (percent(), percent(), percent());
    Delivery::new(late(random), seed)
        .doubled(doubled)
        .cut(cut)
        .foreign(foreign)
}

/// One run: a movement and questions, until it is stopped.
fn run(seed: u64, shown: &mut Tally) {
    let mut random = fastrand::Rng::with_seed(seed);
    let ids: Vec<u8> = (1..=if random.bool() { 6 } else { 11 }).collect();
    let servos = ids.iter().map(|id| {
        let mut servo = Servo::new(*id)
            .at(1500 + 40 * u16::from(*id))
            .calibrated(100, 4000, 0);
        servo.set_byte(r::TEMPERATURE, 20 + id);
        servo.set_byte(r::VOLTAGE, 70 + id);
        servo
    });
    let mut bus = Bus::new(servos);
    let hurry = Arc::new(AtomicBool::new(false));
    let now = Instant::now();
    let far = now + Duration::from_secs(3600);
    bus.set_delivery(delivery(&mut random, seed));
    let world = World {
        bus,
        now,
        stop_at: far,
        hurry: Arc::clone(&hurry),
    };
    let line = Line(Arc::new(Mutex::new(world)));
    let answer_ms = random.choice([2, 5, 20, 20, 20, 60]).unwrap();
    let mut wire = Wire::new(Exchange::over(
        "test",
        Box::new(line.clone()),
        Duration::from_millis(answer_ms),
        Arc::clone(&hurry),
    ));
    for id in &ids {
        // What moves when the stop comes, whatever the bus could be asked before.
        let goal = random.u16(200..3900);
        line.world().servo(*id, |servo| {
            servo.set_word(r::GOAL_POSITION, goal);
            servo.set_word(r::GOAL_SPEED, random.u16(20..600));
            servo.set_byte(r::TORQUE_ENABLE, 1);
        });
    }
    let stop_at = line.world().now + Duration::from_millis(random.u64(1..1500));
    line.world().stop_at = stop_at;
    while !hurry.load(Ordering::SeqCst) {
        ask(&mut wire, &line, &ids, &mut random, shown);
        let pause = line.world().now + Duration::from_millis(random.u64(1..20));
        line.world().pass(pause.min(stop_at));
    }
    let rest = random
        .choice([Rest::Hold, Rest::HoldOrLetGo, Rest::LetGo])
        .unwrap();
    let stopped = wire.bounded(LISTENS, |wire| settle(wire, &ids, &ids, rest));
    hurry.store(false, Ordering::SeqCst);
    line.world().stop_at = far;
    stopped_in_time(&line, &ids, stop_at, rest, shown);
    match stopped {
        Ok(()) => shown.confirmed += 1,
        Err(ServoError::Unconfirmed { .. }) => shown.unconfirmed += 1,
        Err(error) => panic!("seed {seed}: {error}"),
    }
    let slow = ids.iter().all(|id| {
        let mut world = line.world();
        world.servo(*id, |servo| {
            servo.byte(r::TORQUE_ENABLE) == 0 || servo.word(r::GOAL_SPEED) <= SLOWEST
        })
    });
    assert!(slow, "seed {seed}: {rest:?}");
    // In better weather the stop is made good, and nothing moves when the speeds are given back.
    line.world().bus.set_delivery(Delivery::default());
    let later = line.world().now + Duration::from_secs(2);
    line.world().pass(later);
    wire.bounded(LISTENS, |wire| settle(wire, &ids, &ids, rest))
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let before = line.world().positions(&ids);
    ease(&mut wire).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let later = line.world().now + Duration::from_secs(2);
    line.world().pass(later);
    let after = line.world().positions(&ids);
    for ((id, before), after) in ids.iter().zip(before).zip(after) {
        assert!(
            (before - after).abs() < 3.0,
            "seed {seed}: servo {id}: {before} {after}"
        );
        let speed = line.world().servo(*id, |servo| servo.word(r::GOAL_SPEED));
        assert_eq!(speed, 0, "seed {seed}: servo {id}");
    }
    shown.runs += 1;
}

/// Asks or writes one thing, and compares an answer that counts with the servos.
fn ask(wire: &mut Wire, line: &Line, ids: &[u8], random: &mut fastrand::Rng, shown: &mut Tally) {
    let id = random.choice(ids.iter().copied()).unwrap();
    let before = line.world().positions(ids);
    let place = |id: u8| usize::from(id) - 1;
    let measured = |id: u8, steps: i64| {
        let after = line.world().servo(id, |servo| servo.position());
        let (a, b) = (before[place(id)], after);
        let steps = super::servo::exact(steps);
        assert!(
            (a.min(b) - 1.0..=a.max(b) + 1.0).contains(&steps),
            "servo {id} was between {a} and {b}, and {steps} was measured"
        );
    };
    let done = match random.u8(..8) {
        0 | 1 => wire.read_each(ids, Register::POSITION).map(|found| {
            found.iter().for_each(|(id, (steps, _))| measured(*id, *steps));
            found.len()
        }),
        2 => wire.states(ids).map(|found| {
            for (id, state) in &found {
                measured(*id, state.position);
                assert_eq!(state.mode.operating, 0, "servo {id}");
            }
            found.len()
        }),
        3 => wire.health(id).map(|health| {
            assert_eq!(health.temperature, i64::from(20 + id), "servo {id}");
            assert!(
                (health.voltage - f64::from(70 + id) / 10.0).abs() < 1e-9,
                "servo {id}"
            );
            measured(id, health.position);
            1
        }),
        4 => wire.calibrations(ids).map(|found| {
            for (id, kept) in &found {
                assert_eq!((kept.min, kept.max, kept.offset), (100, 4000, 0), "servo {id}");
            }
            found.len()
        }),
        5 => {
            let limit = random.i64(300..1000);
            wire.write(id, Register::TORQUE_LIMIT, limit).map(|()| {
                let has = line.world().servo(id, |servo| servo.word(r::TORQUE_LIMIT));
                assert_eq!(i64::from(has), limit, "servo {id}");
                shown.written += 1;
                0
            })
        }
        6 => wire.read(id, Register::MODEL).map(|model| {
            assert_eq!(model, 777, "servo {id}");
            1
        }),
        _ => power(wire, ids).map(|found| {
            found.iter().for_each(|(id, steps)| measured(*id, *steps));
            found.len()
        }),
    };
    match done {
        Ok(read) => shown.read += u32::try_from(read).unwrap(),
        Err(
            ServoError::Silent { .. }
            | ServoError::Garbled { .. }
            | ServoError::Value { .. }
            | ServoError::Stopped { .. },
        ) => {
            shown.given_up += 1;
        }
        Err(error) => panic!("{error}"),
    }
}

/// No joint moves 100 ms after the stop, whatever was answered.
fn stopped_in_time(line: &Line, ids: &[u8], stop_at: Instant, rest: Rest, shown: &mut Tally) {
    let mut world = line.world();
    for id in ids {
        let command = world.bus.frames().iter().find(|frame| {
            let slowed = frame.word(*id, r::GOAL_SPEED).is_some_and(|speed| speed <= 1);
            let off = frame.byte(*id, r::TORQUE_ENABLE) == Some(0);
            frame.at >= stop_at && if rest == Rest::LetGo { off } else { slowed }
        });
        let took = command.expect("it was told").at - stop_at;
        shown.longest = shown.longest.max(took);
    }
    let end = stop_at + Duration::from_millis(100);
    assert!(world.now <= end, "the stop took {:?}", world.now - stop_at);
    world.pass(end);
    let fastest = world.fastest(ids);
    assert!(fastest <= 1.0, "{fastest} steps/s 100 ms after the stop");
}

#[test]
fn whatever_is_late_no_wrong_reading_counts_and_every_stop_ends_the_motion() {
    let runs = std::env::var("SERVO_RUNS").map_or(60, |runs| runs.parse().unwrap());
    let mut shown = Tally::default();
    for seed in 0..runs {
        run(seed, &mut shown);
    }
    assert!(shown.read > 0 && shown.written > 0 && shown.confirmed > 0 && shown.unconfirmed > 0);
    println!("{shown:?}");
}

#[test]
fn an_arm_that_answers_after_its_time_is_still_read() {
    // Each answer to a question is good for it, also the one to an earlier try.
    for (by, reads) in [(0, true), (19, true), (42, true), (55, true), (200, false)] {
        let servos = (1..=6).map(Servo::new);
        let mut bus = Bus::new(servos);
        bus.set_delivery(Delivery::new(Lateness::Always(Duration::from_millis(by)), 1));
        let hurry = Arc::new(AtomicBool::new(false));
        let now = Instant::now();
        let world = World {
            bus,
            now,
            stop_at: now + Duration::from_secs(3600),
            hurry: Arc::clone(&hurry),
        };
        let line = Line(Arc::new(Mutex::new(world)));
        let mut wire = Wire::new(Exchange::over(
            "test",
            Box::new(line),
            Duration::from_millis(20),
            hurry,
        ));
        for id in 1..=6 {
            let read = wire.health(id);
            assert_eq!(read.is_ok(), reads, "{by} ms: {read:?}");
        }
    }
}
