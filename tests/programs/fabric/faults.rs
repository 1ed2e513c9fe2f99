//! The network and the processes between two machines fail while something moves, at random moments. `FABRIC_SEEDS` is how often.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::machines::{Assistant, Robot};
use super::{AT_REST, long_motion};
use crate::support::proxy::Weather;
use crate::support::scene::{Motor, monotonic_ns};
use crate::support::status::{pid, toolbox};

/// What fails.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Network(Weather),
    /// The host's program is frozen and goes on later.
    HostFrozen,
    HostKilled,
    MountKilled,
    /// The service is killed; its mount sees that.
    ServiceKilled,
    BothKilled,
    /// A person stops everything while the network is dark.
    StopInTheDark,
}

const FAULTS: [Fault; 12] = [
    Fault::Network(Weather::Dark),
    Fault::Network(Weather::Cut),
    Fault::Network(Weather::DarkBack),
    Fault::Network(Weather::Slow(Duration::from_millis(60))),
    Fault::Network(Weather::Slow(Duration::from_millis(300))),
    Fault::Network(Weather::Loses),
    Fault::Network(Weather::Reorders),
    Fault::HostFrozen,
    Fault::HostKilled,
    Fault::MountKilled,
    Fault::ServiceKilled,
    Fault::StopInTheDark,
];

/// A scene of faults.
struct Storm {
    robot: Robot,
    laptop: Assistant,
    random: fastrand::Rng,
    /// The time from each fault that lasted to the last motor command after it.
    last_steps: Vec<Duration>,
}

impl Storm {
    fn pass(&mut self, seed: u64, fault: Fault) {
        let Self {
            robot,
            laptop,
            random,
            ..
        } = self;
        let what = format!("seed {seed}, {fault:?}");
        let call_id = format!("seed-{seed}");
        let from = robot.scene.motors().len();
        laptop.client.call(&call_id, "assemble", &long_motion());
        robot.until_moving(from);
        std::thread::sleep(Duration::from_millis(random.u64(..150)));
        let lasts = Duration::from_millis(random.u64(20..1300));
        let began = monotonic_ns();
        self.strike(fault, lasts);
        let Self {
            robot,
            laptop,
            random: _,
            ..
        } = self;
        let survives = !matches!(fault, Fault::ServiceKilled | Fault::BothKilled);
        if survives {
            // A fault that was too short to end the motion is followed by a stop.
            if !until_answered(laptop, &call_id, Duration::from_millis(300)) {
                let answer = laptop
                    .client
                    .ask("ovos.tools.stop", &json!({ "toolbox_id": "testbed" }));
                assert!(answer["toolboxes"].is_array(), "{what}: {answer}");
            }
            assert!(
                until_answered(laptop, &call_id, Duration::from_secs(10)),
                "{what}: no answer"
            );
            laptop.client.settled(&call_id);
        }
        let answered = monotonic_ns();
        let ends_at_once = matches!(
            fault,
            Fault::MountKilled | Fault::ServiceKilled | Fault::BothKilled
        );
        let rest = if ends_at_once {
            began + nanos(AT_REST)
        } else {
            answered
        };
        std::thread::sleep(AT_REST.saturating_sub(Duration::from_nanos(answered - began)));
        let motors = robot.motors(from);
        let late: Vec<&Motor> = motors
            .iter()
            .filter(|motor| moves(motor) && motor.at > rest)
            .collect();
        assert!(
            late.is_empty(),
            "{what}: moved after its call had ended at {rest}: {late:?}"
        );
        let is_lasting = lasts > AT_REST
            && !matches!(
                fault,
                Fault::Network(Weather::Slow(_) | Weather::Loses | Weather::Reorders)
            );
        if is_lasting {
            let last = motors
                .iter()
                .rev()
                .find(|motor| moves(motor))
                .map_or(0, |motor| motor.at);
            let after = Duration::from_nanos(last.saturating_sub(began));
            assert!(after <= AT_REST, "{what}: moved {after:?} after the fault");
            self.last_steps.push(after);
        }
        self.heal(fault, &what);
    }

    fn strike(&mut self, fault: Fault, lasts: Duration) {
        let Self { robot, laptop, .. } = self;
        match fault {
            Fault::Network(weather) => {
                laptop.proxy.set(weather);
                std::thread::sleep(lasts);
                laptop.proxy.set(Weather::Sound);
            }
            Fault::StopInTheDark => {
                laptop.proxy.set(Weather::Dark);
                let asked = Instant::now();
                let answer = laptop
                    .client
                    .ask("ovos.tools.stop", &json!({ "toolbox_id": "testbed" }));
                let took = asked.elapsed();
                let stopped = &answer["toolboxes"][0];
                assert_eq!(stopped["ok"], false, "{answer}");
                assert!(stopped["error"].as_str().unwrap().contains("robot1"), "{answer}");
                assert!(took < Duration::from_millis(800), "answered after {took:?}");
                std::thread::sleep(lasts);
                laptop.proxy.set(Weather::Sound);
            }
            Fault::HostFrozen => {
                robot.host.signal(Signal::STOP);
                std::thread::sleep(lasts);
                robot.host.signal(Signal::CONT);
            }
            Fault::HostKilled => robot.host.kill(),
            Fault::MountKilled => {
                let mount = toolbox(&mut laptop.client, "testbed");
                let mount = pid(&mount).expect("the process of a mount");
                rustix::process::kill_process(mount, Signal::KILL).unwrap();
            }
            Fault::ServiceKilled => laptop.service.kill(),
            Fault::BothKilled => {
                laptop.service.kill();
                robot.host.kill();
            }
        }
    }

    /// Puts everything right, and looks whether both sides agree on the latch, before and after a resume.
    fn heal(&mut self, fault: Fault, what: &str) {
        let Self { robot, laptop, .. } = self;
        if matches!(fault, Fault::HostKilled | Fault::BothKilled) {
            robot.restart();
        }
        if matches!(fault, Fault::ServiceKilled | Fault::BothKilled) {
            laptop.restart();
        }
        laptop.until_reached();
        // A fault that was over before the lease ended the call and latched nothing. Words may still be on their way.
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let here = toolbox(&mut laptop.client, "testbed")["latched"] == true;
            let output = laptop.doctor(robot);
            if here == output.contains("EMERGENCY STOP") {
                println!(
                    "{what}: {}",
                    if here {
                        "both are latched"
                    } else {
                        "neither is latched"
                    }
                );
                break;
            }
            assert!(
                Instant::now() < end,
                "{what}: latched here: {here}, there: {output}"
            );
        }
        laptop.resume();
        let output = laptop.doctor(robot);
        assert!(
            !output.contains("EMERGENCY STOP"),
            "{what}: resumed here and not there: {output}"
        );
        let done = laptop
            .client
            .invoke("assemble", &json!({ "steps": 1, "step_ms": 1 }));
        let log = robot.host.output();
        assert_eq!(done["result"]["success"], true, "{what}: {done}\n{log}");
    }
}

fn moves(motor: &Motor) -> bool {
    matches!(motor.kind.as_str(), "start" | "step")
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap()
}

/// Whether a call is answered within this time.
fn until_answered(laptop: &mut Assistant, call_id: &str, limit: Duration) -> bool {
    let end = Instant::now() + limit;
    while laptop.client.answer_of(call_id).is_none() {
        if Instant::now() >= end {
            return false;
        }
        let frame: Option<Value> = laptop.client.next(end);
        drop(frame);
    }
    true
}

#[test]
fn nothing_moves_and_no_call_is_lost_when_what_is_between_two_machines_fails() {
    let seeds = std::env::var("FABRIC_SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(12);
    let robot = Robot::new(&[("laptop", "operator")]);
    let laptop = Assistant::new("laptop", &robot);
    let mut storm = Storm {
        robot,
        laptop,
        random: fastrand::Rng::new(),
        last_steps: Vec::new(),
    };
    let first = std::env::var("FABRIC_FIRST")
        .ok()
        .and_then(|first| first.parse().ok())
        .unwrap_or(0);
    for seed in first..first + seeds {
        storm.random = fastrand::Rng::with_seed(seed);
        let fault = FAULTS[usize::try_from(seed).unwrap() % FAULTS.len()];
        storm.pass(seed, fault);
    }
    storm.pass(seeds, Fault::BothKilled);
    let worst = storm.last_steps.iter().max().copied().unwrap_or_default();
    println!(
        "{} faults; the last motor command came at most {worst:?} after one that lasted",
        seeds + 1
    );
}

#[test]
fn a_host_that_only_halts_without_its_commander_is_not_stopped_by_it_afterwards() {
    let robot = Robot::with(&[("laptop", "operator")], &["--on-lease-loss", "halt"]);
    let mut laptop = Assistant::new("laptop", &robot);
    let from = robot.scene.motors().len();
    laptop.client.call("moves", "assemble", &long_motion());
    robot.until_moving(from);
    laptop.proxy.set(Weather::Dark);
    assert!(until_answered(&mut laptop, "moves", Duration::from_secs(10)));
    laptop.proxy.set(Weather::Sound);
    laptop.until_reached();
    let done = laptop
        .client
        .invoke("assemble", &json!({ "steps": 1, "step_ms": 1 }));
    assert_eq!(done["result"]["success"], true, "{done}");
    let kinds = robot.motors(from).into_iter().map(|motor| motor.kind);
    let kinds: std::collections::BTreeSet<String> = kinds.collect();
    assert!(
        kinds.contains("halt") && !kinds.contains("emergency"),
        "{kinds:?}"
    );
}
