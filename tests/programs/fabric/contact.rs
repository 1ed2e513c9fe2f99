//! Contact with a host that is made, or made again: what is called then is done, and nobody is told earlier that the host is there.

use rustix::process::{Signal, kill_process};
use serde_json::json;

use super::machines::{Assistant, Robot};
use crate::support::proxy::Weather;
use crate::support::status::{pid, toolbox, toolbox_until};

/// After what contact is made.
#[derive(Clone, Copy, Debug)]
enum After {
    /// The service was started, and saw the host for the first time.
    Start,
    /// The network carried nothing for longer than a lease lasts, and then carries what it held up.
    Dark,
    /// Every connection was ended.
    Cut,
    HostFrozen,
    HostRestart,
    MountRestart,
    ServiceRestart,
}

/// Brings the moment about, up to where the host can be reached again.
fn come_to(after: After, robot: &mut Robot, laptop: &mut Assistant) {
    match after {
        After::Start => {}
        After::Dark | After::Cut => {
            let weather = if matches!(after, After::Dark) {
                Weather::Dark
            } else {
                Weather::Cut
            };
            laptop.proxy.set(weather);
            until_lost(laptop);
            laptop.proxy.set(Weather::Sound);
        }
        After::HostFrozen => {
            robot.host.signal(Signal::STOP);
            until_lost(laptop);
            robot.host.signal(Signal::CONT);
        }
        After::HostRestart => {
            robot.host.kill();
            until_lost(laptop);
            robot.restart();
        }
        After::MountRestart => {
            let mount = pid(&toolbox(&mut laptop.client, "testbed")).expect("the process of a mount");
            kill_process(mount, Signal::KILL).unwrap();
            toolbox_until(&mut laptop.client, "testbed", "other mount", |toolbox| {
                pid(toolbox).is_some_and(|now| now != mount)
            });
        }
        After::ServiceRestart => {
            laptop.service.kill();
            laptop.restart();
        }
    }
}

fn until_lost(laptop: &mut Assistant) {
    toolbox_until(&mut laptop.client, "testbed", "loss of its host", |toolbox| {
        toolbox["backend"]["state"] == "unreachable"
    });
}

/// Why steps failed, as the service has recorded it.
fn failures(laptop: &Assistant) -> String {
    let facts = laptop.scene.sandbox.path("state/ovos-tools/facts.jsonl");
    let facts = std::fs::read_to_string(facts).unwrap_or_default();
    let failed = facts.lines().filter(|fact| fact.contains("message"));
    failed.map(|fact| format!("{fact}\n")).collect()
}

#[test]
fn what_is_called_when_contact_is_made_is_done() {
    let mut robot = Robot::new(&[("laptop", "operator")]);
    let mut laptop = Assistant::new("laptop", &robot);
    // Whether the call comes before the service says that the host is there.
    for (after, at_once) in [
        (After::Start, false),
        (After::Dark, true),
        (After::Dark, false),
        (After::Cut, false),
        (After::HostFrozen, true),
        (After::HostFrozen, false),
        (After::HostRestart, false),
        (After::MountRestart, false),
        (After::ServiceRestart, false),
    ] {
        come_to(after, &mut robot, &mut laptop);
        if !at_once {
            laptop.until_reached();
        }
        let done = laptop
            .client
            .invoke("assemble", &json!({ "steps": 1, "step_ms": 1 }));
        assert_eq!(
            done["result"]["success"],
            true,
            "{after:?}, at once: {at_once}: {done}\n{}\n{}\n{}",
            robot.host.log(),
            laptop.service.log(),
            failures(&laptop)
        );
    }
}
