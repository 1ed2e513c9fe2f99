//! A certificate that ends, or is revoked, while its machine moves something.

use std::fs;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::AT_REST;
use super::machines::{Assistant, Robot, days};
use crate::support::fabric::succeeds;
use crate::support::process::DEADLINE;
use crate::support::scene::{Scene, monotonic_ns};
use crate::support::status::toolbox_until;

/// How long the certificate is valid that ends: services start meanwhile.
const VALID: Duration = Duration::from_secs(25);

/// How long before its end something begins to move.
const BEFORE: Duration = Duration::from_secs(2);

/// What the clock of the machine and the processors may add to the times that the page for people states.
const SLACK: Duration = Duration::from_millis(400);

/// How long a running host may take until it knows that a machine is revoked.
const REVOKED: Duration = Duration::from_millis(500);

fn wall_clock() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap()
}

/// When the certificate of a machine ends.
fn end_of(scene: &Scene) -> Duration {
    let identity = scene.sandbox.path("config/ovos-tools/fabric/identity.json");
    let identity: Value = serde_json::from_str(&fs::read_to_string(identity).unwrap()).unwrap();
    Duration::from_secs(identity["valid_until"].as_u64().unwrap())
}

/// Begins a motion that lasts until something ends it.
fn move_on(robot: &Robot, laptop: &mut Assistant) -> usize {
    let from = robot.scene.motors().len();
    let args = json!({ "steps": 20_000, "step_ms": 5 });
    laptop.client.call("moves", "assemble", &args);
    robot.until_moving(from);
    from
}

/// How long after this moment motors moved last.
fn moved_after(robot: &Robot, from: usize, moment: u64) -> Duration {
    let motors = robot.motors(from);
    let last = motors.iter().rev().find(|motor| motor.kind == "step");
    Duration::from_nanos(last.expect("a step").at.saturating_sub(moment))
}

/// Moves something when a certificate ends at this time of the wall clock: it ends with it, and not before.
fn move_past(robot: &Robot, laptop: &mut Assistant, end: Duration) {
    while wall_clock() + BEFORE < end {
        thread::park_timeout(Duration::from_millis(50));
    }
    let from = move_on(robot, laptop);
    let left = end.checked_sub(wall_clock()).expect("it moves before the end");
    let end = monotonic_ns() + u64::try_from(left.as_nanos()).unwrap();
    laptop.client.until_answered([&"moves".to_owned()]);
    let after = moved_after(robot, from, end);
    assert!(
        after <= AT_REST + SLACK,
        "moved {after:?} after the certificate had ended"
    );
    assert!(monotonic_ns() >= end, "it ended before its certificate");
}

fn until_unreachable(laptop: &mut Assistant, why: &str) {
    toolbox_until(&mut laptop.client, "testbed", why, |toolbox| {
        let backend = &toolbox["backend"];
        let reason = backend["reason"].as_str().unwrap_or_default();
        backend["state"] == "unreachable" && reason.contains(why)
    });
}

fn moves_again(laptop: &mut Assistant) {
    laptop.until_reached();
    laptop.until_latched();
    let done = moves_once(laptop);
    let log = laptop.service.output();
    assert_eq!(done["result"]["success"], true, "{done}\n{log}");
}

/// Moves something, after a resume where that is needed.
fn moves_once(laptop: &mut Assistant) -> Value {
    laptop.resume();
    laptop.client.settled("moves");
    laptop
        .client
        .invoke("assemble", &json!({ "steps": 1, "step_ms": 1 }))
}

#[test]
fn a_certificate_that_ends_ends_the_link_and_what_its_machine_moves() {
    let robot = Robot::new(&[("laptop", "operator")]);
    let invite = |days: &str| {
        let arguments = ["invite", "laptop", "--role", "operator", "--days", days];
        succeeds(&robot.scene.sandbox, &arguments);
    };
    invite(&days(VALID));
    let mut laptop = Assistant::new("laptop", &robot);
    let end = end_of(&laptop.scene);
    move_past(&robot, &mut laptop, end);
    // What is wrong is said on this side, by the service and by hand.
    let why = "the certificate of `laptop` ended";
    until_unreachable(&mut laptop, why);
    let output = laptop.doctor(&robot);
    assert!(
        output.contains(why) && output.contains("fabric invite laptop"),
        "{output}"
    );
    // A new one is taken without a restart.
    invite("30");
    let file = robot.invitation("laptop");
    succeeds(&laptop.scene.sandbox, &["join", file.to_str().unwrap()]);
    moves_again(&mut laptop);
}

#[test]
fn the_certificate_of_a_host_that_ends_ends_what_it_moves() {
    let mut robot = Robot::valid_for(VALID, &[("laptop", "operator")]);
    let mut laptop = Assistant::new("laptop", &robot);
    move_past(&robot, &mut laptop, end_of(&robot.scene));
    let why = "the certificate of `robot1` ended";
    robot
        .host
        .until("a host that says why nobody reaches it", |host| {
            host.output().contains(why).then_some(())
        });
    until_unreachable(&mut laptop, "no connection");
    let output = laptop.doctor(&robot);
    assert!(output.contains("a host whose certificate has ended"), "{output}");
    // The authority makes a new one for itself, and the host shows it without a restart.
    succeeds(&robot.scene.sandbox, &["invite", "robot1"]);
    let file = robot.invitation("robot1");
    succeeds(&robot.scene.sandbox, &["join", file.to_str().unwrap()]);
    laptop.until_reached();
    // A link that was made anew in the last second of the certificate has ended the motion without a stop. Where there was one, it is
    // heard of in one of the next moments.
    let end = Instant::now() + DEADLINE;
    loop {
        let done = moves_once(&mut laptop);
        if done["result"]["success"] == true {
            return;
        }
        assert!(Instant::now() < end, "{done}\n{}", laptop.service.output());
    }
}

#[test]
fn a_machine_that_is_revoked_moves_nothing_any_more() {
    let robot = Robot::new(&[("laptop", "operator")]);
    let mut laptop = Assistant::new("laptop", &robot);
    let from = move_on(&robot, &mut laptop);
    succeeds(&robot.scene.sandbox, &["revoke", "laptop"]);
    let revoked = monotonic_ns();
    laptop.client.until_answered([&"moves".to_owned()]);
    until_unreachable(&mut laptop, "may not");
    let after = moved_after(&robot, from, revoked);
    let limit = REVOKED + AT_REST + SLACK;
    assert!(after <= limit, "moved {after:?} after it was revoked");
    succeeds(&robot.scene.sandbox, &["allow", "laptop", "--role", "operator"]);
    moves_again(&mut laptop);
}
