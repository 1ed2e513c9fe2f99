//! Six machines of one service move, and one of them is lost at a random moment. `FABRIC_SEEDS` is how often.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::machines::{Assistant, Robot};
use super::{AT_REST, long_motion};
use crate::support::fabric::program;
use crate::support::proxy::{Proxy, Weather};
use crate::support::scene::{assert_still, from_first, monotonic_ns};

const MACHINES: usize = 6;

/// How one machine is lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Network(Weather),
    HostFrozen,
    HostKilled,
}

const LOSSES: [Loss; 4] = [
    Loss::Network(Weather::Dark),
    Loss::Network(Weather::Cut),
    Loss::HostFrozen,
    Loss::HostKilled,
];

fn name(number: usize) -> String {
    format!("robot{}", number + 1)
}

#[test]
fn one_of_six_machines_is_lost_alone_and_a_stop_reaches_all_others() {
    let mut robots = vec![Robot::new(&[("laptop", "operator")])];
    for number in 1..MACHINES {
        let further = Robot::joining(&robots[0], &name(number));
        robots.push(further);
    }
    let proxies: Vec<Proxy> = robots.iter().map(|robot| Proxy::to(robot.port)).collect();
    let mount = |(number, proxy): (usize, &Proxy)| {
        let (host, at) = (name(number), format!("127.0.0.1:{}", proxy.port));
        let args = json!(["mount", host, "testbed", "--at", at, "--id", host]);
        (host, json!({ "command": program(), "args": args }))
    };
    let programs: serde_json::Map<String, Value> = proxies.iter().enumerate().map(mount).collect();
    let unused = Proxy::to(robots[0].port);
    let mut laptop = Assistant::mounting("laptop", &robots[0], unused, &json!(programs));
    let seeds = std::env::var("FABRIC_SEEDS").ok();
    let seeds = seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(LOSSES.len());
    for seed in 0..seeds {
        let mut random = fastrand::Rng::with_seed(seed as u64);
        let (loss, lost) = (LOSSES[seed % LOSSES.len()], random.usize(..MACHINES));
        let what = format!("seed {seed}, {loss:?} of {}", name(lost));
        let from: Vec<usize> = robots.iter().map(|robot| robot.scene.motors().len()).collect();
        for (number, robot) in robots.iter().enumerate() {
            laptop.until_reaches(&name(number));
            let name = name(number);
            let call =
                json!({ "name": "assemble", "args": long_motion(), "toolbox_id": name, "call_id": name });
            laptop.client.send("ovos.tools.invoke", &call);
            robot.until_moving(from[number]);
        }
        let began = monotonic_ns();
        match loss {
            Loss::Network(weather) => proxies[lost].set(weather),
            Loss::HostFrozen => robots[lost].host.signal(Signal::STOP),
            Loss::HostKilled => robots[lost].host.kill(),
        }
        laptop.client.until_answered([&name(lost)]);
        let answered = monotonic_ns();
        let last = robots[lost].motors(from[lost]);
        let last = last.iter().rev().find(|motor| motor.kind == "step").unwrap().at;
        let after = Duration::from_nanos(last.saturating_sub(began));
        assert!(after <= AT_REST, "{what}: moved {after:?} after the loss");
        for (number, robot) in robots.iter().enumerate().filter(|(number, _)| *number != lost) {
            assert!(
                laptop.client.answer_of(&name(number)).is_none(),
                "{what}: {number} ended"
            );
            robot
                .scene
                .until_motors("a step after the loss of another", |motors| {
                    let newest = motors.iter().rev().find(|motor| motor.kind == "step")?;
                    (newest.at > answered).then_some(())
                });
        }
        let stopped = laptop.client.ask("ovos.tools.stop", &json!({}));
        for outcome in stopped["toolboxes"].as_array().unwrap() {
            let is_lost = outcome["toolbox_id"] == name(lost).as_str();
            assert!(outcome["ok"] == !is_lost, "{what}: {stopped}");
        }
        let calls: Vec<String> = (0..MACHINES).map(name).collect();
        laptop.client.until_answered(&calls);
        for (number, robot) in robots.iter().enumerate().filter(|(number, _)| *number != lost) {
            let motors = robot.motors(from[number]);
            assert_still(
                from_first(&motors, &["emergency"]).unwrap_or_else(|| panic!("{what}: {number} goes on")),
            );
        }
        match loss {
            Loss::Network(_) => proxies[lost].set(Weather::Sound),
            Loss::HostFrozen => robots[lost].host.signal(Signal::CONT),
            Loss::HostKilled => robots[lost].restart(),
        }
        for number in 0..MACHINES {
            laptop.until_reaches(&name(number));
            laptop.resume_of(&name(number));
            laptop.client.settled(&name(number));
            let short = json!({ "steps": 1, "step_ms": 1 });
            let call = json!({ "name": "assemble", "args": short, "toolbox_id": name(number) });
            let done = laptop.client.ask("ovos.tools.invoke", &call);
            assert_eq!(done["result"]["success"], true, "{what}: {number}: {done}");
        }
    }
}
