//! Who may do what on another machine, and who is told so.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

use serde_json::json;

use super::long_motion;
use super::machines::{Assistant, Robot, start_host};
use crate::support::fabric::{fabric, succeeds};
use crate::support::process::{DEADLINE, Sandbox};
use crate::support::scene::{Scene, assert_still, from_first};
use crate::support::status::toolbox_until;

#[test]
fn one_machine_commands_and_the_others_read_and_stop() {
    let robot = Robot::new(&[
        ("laptop", "operator"),
        ("tablet", "commander"),
        ("screen", "viewer"),
    ]);
    let mut laptop = Assistant::new("laptop", &robot);
    let from = robot.scene.motors().len();
    laptop.client.call("moves", "assemble", &long_motion());
    robot.until_moving(from);
    for (name, refusal) in [("tablet", "`laptop` commands"), ("screen", "may only read")] {
        let mut other = Assistant::new(name, &robot);
        let client = &mut other.client;
        assert_eq!(
            client.invoke("add", &json!({ "a": 1, "b": 2 }))["result"]["result"],
            3,
            "{name} reads"
        );
        let refused = client.invoke("set_mark", &json!({}));
        let text = refused["error"].as_str().unwrap_or_default().to_owned();
        assert!(text.contains(refusal), "{name}: {refused}");
        // Its toolbox makes the result, and says which actions failed.
        let refused = client.invoke("assemble", &json!({}));
        assert_eq!(refused["result"]["success"], false, "{name}: {refused}");
        assert!(laptop.client.answer_of("moves").is_none(), "{name} disturbed it");
        if name == "screen" {
            client.ask("ovos.tools.stop", &json!({ "toolbox_id": "testbed" }));
            laptop.client.until_answered([&"moves".to_owned()]);
            assert_still(from_first(&robot.motors(from), &["emergency"]).expect("an emergency halt"));
            laptop.until_latched();
            let stop_id = other.until_latched();
            let asked = json!({ "toolbox_id": "testbed", "stop_id": stop_id });
            let answer = other.client.ask("ovos.tools.resume", &asked);
            assert_eq!(
                answer["toolboxes"][0]["ok"], false,
                "a viewer lifts no stop: {answer}"
            );
        }
    }
    assert!(laptop.doctor(&robot).contains("EMERGENCY STOP"));
    laptop.resume();
}

#[test]
fn strangers_get_nothing_and_the_revoked_nothing_more() {
    let mut robot = Robot::new(&[("laptop", "operator"), ("tablet", "operator")]);
    let at = format!("127.0.0.1:{}", robot.port);
    // A machine of another fabric.
    let stranger = Sandbox::new();
    succeeds(&stranger, &["init", "robot1"]);
    let (well, output) = fabric(&stranger, &["doctor", "robot1", &at]);
    assert!(!well && output.contains("do not accept each other"), "{output}");
    // One of this fabric that was revoked before it came.
    let lost = Sandbox::new();
    succeeds(&lost, &["join", robot.invitation("tablet").to_str().unwrap()]);
    succeeds(&robot.scene.sandbox, &["revoke", "tablet"]);
    // The host looks twice a second.
    let end = Instant::now() + DEADLINE;
    loop {
        let (well, output) = fabric(&lost, &["doctor", "robot1", &at]);
        if !well {
            assert!(
                output.contains("answers nothing") || output.contains("may not"),
                "{output}"
            );
            break;
        }
        assert!(Instant::now() < end, "{output}");
    }
    // One that is revoked while it works, and let in again.
    let mut laptop = Assistant::new("laptop", &robot);
    succeeds(&robot.scene.sandbox, &["revoke", "laptop"]);
    toolbox_until(&mut laptop.client, "testbed", "refusal", |toolbox| {
        toolbox["backend"]["state"] == "unreachable"
    });
    let refused = laptop.client.invoke("add", &json!({ "a": 1, "b": 2 }));
    let text = refused["error"].as_str().unwrap_or_default().to_owned();
    assert!(
        text.contains("laptop") || text.contains("not reached"),
        "{refused}"
    );
    let output = laptop.doctor(&robot);
    assert!(
        output.contains("may not") || output.contains("answers nothing"),
        "{output}"
    );
    succeeds(&robot.scene.sandbox, &["allow", "laptop", "--role", "operator"]);
    laptop.until_reached();
    let output = laptop.doctor(&robot);
    assert!(
        output.contains("connections of machines that `robot1` does not know"),
        "{output}"
    );
    assert!(output.contains("this machine is operator there"), "{output}");
    // Another machine than the one that is meant.
    let (well, output) = fabric(&laptop.scene.sandbox, &["doctor", "robot2", &at]);
    assert!(!well && output.contains("is `robot1`, not `robot2`"), "{output}");
    // A key that others can read.
    let key = robot.scene.sandbox.path("config/ovos-tools/fabric/key.pem");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    robot.host.kill();
    let (started, output) = fabric(&robot.scene.sandbox, &["host", "--listen", &at]);
    assert!(
        !started && output.contains("other users have access to"),
        "{output}"
    );
}

#[test]
fn a_machine_that_lies_about_what_it_starts_moves_nothing() {
    let scene = Scene::new(&json!({}));
    let denied = json!({ "testbed": { "tools": { "deny": ["count_marks"] } } });
    scene.configure(
        &json!({}),
        &json!({ "PHAL": { "ovos-phal-plugin-tools": denied } }),
    );
    let robot = Robot::on(scene, &[("screen", "viewer"), ("laptop", "operator")], &[]);
    for (name, lies) in [
        ("screen", json!({ "tool": "add", "effect": "read" })),
        ("laptop", json!({ "effect": "safe" })),
        ("laptop", json!({ "effect": "read" })),
    ] {
        let mut liar = Assistant::lying(name, &robot, &lies);
        let from = robot.scene.motors().len();
        let refused = liar.client.invoke("assemble", &json!({ "steps": 1 }));
        assert_eq!(refused["result"]["success"], false, "{name} {lies}: {refused}");
        let motors = robot.motors(from);
        let moved = motors.iter().find(|motor| motor.kind != "halt");
        assert!(moved.is_none(), "{name} {lies}: {moved:?}");
    }
    // What the host forbids is no step of anything there.
    let mut laptop = Assistant::new("laptop", &robot);
    for tool in ["count_marks", "set_mark"] {
        let done = laptop.client.invoke("delegate", &json!({ "tool": tool }));
        let text = done["error"].as_str().unwrap_or_default().to_owned();
        assert_eq!(text.contains("tools.deny"), tool == "count_marks", "{done}");
    }
    let (started, output) = fabric(&robot.scene.sandbox, &["host", "--listen", "127.0.0.1:1"]);
    assert!(!started && output.contains("runs already"), "{output}");
}

#[test]
fn a_host_refuses_by_its_own_policy_and_never_a_stop() {
    let scene = Scene::new(&json!({}));
    let policy = json!([
        { "who": "machine:laptop", "tools": ["testbed__assemble"], "decide": "deny", "reason": "the arm is in repair" },
        { "who": "machine:laptop", "tools": ["set_mark"], "decide": "confirm" },
        { "who": "machine:tablet", "decide": "deny" },
        { "who": "bus", "decide": "deny" },
    ]);
    scene.configure(&json!({ "policy": policy }), &json!({}));
    let robot = Robot::on(scene, &[("laptop", "operator"), ("tablet", "operator")], &[]);
    let add = json!({ "a": 1, "b": 2 });
    // The services themselves allow everything to clients of their bus.
    let mut laptop = Assistant::new("laptop", &robot);
    let from = robot.scene.motors().len();
    for (tool, args, expected) in [
        (
            "assemble",
            json!({}),
            Some("(rule 1 of service.policy): the arm is in repair"),
        ),
        (
            "set_mark",
            json!({}),
            Some("(rule 2 of service.policy asks for a confirmation"),
        ),
        ("add", add.clone(), None),
    ] {
        let answer = laptop.client.invoke(tool, &args);
        let text = answer["error"].as_str().unwrap_or_default();
        match expected {
            Some(expected) => assert!(
                text.contains("host `robot1` refuses it: machine:laptop may not call")
                    && text.contains(expected),
                "{tool}: {answer}"
            ),
            None => assert_eq!(answer["result"]["result"], 3, "{answer}"),
        }
    }
    assert!(
        robot.motors(from).iter().all(|motor| motor.kind != "step"),
        "something moved"
    );
    let mut tablet = Assistant::new("tablet", &robot);
    let refused = tablet.client.invoke("add", &add);
    assert!(
        refused.to_string().contains("rule 3 of service.policy"),
        "{refused}"
    );
    let from = robot.scene.motors().len();
    let stopped = tablet
        .client
        .ask("ovos.tools.stop", &json!({ "toolbox_id": "testbed" }));
    assert_eq!(stopped["toolboxes"][0]["ok"], true, "{stopped}");
    assert!(
        from_first(&robot.motors(from), &["emergency"]).is_some(),
        "no halt"
    );
    let asked = json!({ "toolbox_id": "testbed", "stop_id": tablet.until_latched() });
    let answer = tablet.client.ask("ovos.tools.resume", &asked);
    let why = answer["toolboxes"][0]["error"].as_str().unwrap_or_default();
    assert!(why.contains("rule 3 of service.policy"), "{answer}");
    laptop.until_latched();
    laptop.resume();
}

#[test]
fn a_host_that_cannot_read_its_configuration_moves_nothing_and_says_so() {
    let mut robot = Robot::new(&[("laptop", "operator")]);
    robot.host.kill();
    fs::write(
        robot.scene.sandbox.path("config/mycroft/mycroft.conf"),
        "{\"PHAL\": {",
    )
    .unwrap();
    robot.restart();
    let mut laptop = Assistant::new("laptop", &robot);
    let refused = laptop.client.invoke("set_mark", &json!({}));
    let text = refused["error"].as_str().unwrap_or_default().to_owned();
    assert!(text.contains("cannot read the configuration"), "{refused}");
    let output = laptop.doctor(&robot);
    assert!(output.contains("BAD  `robot1` cannot read"), "{output}");
    assert!(
        robot.host.output().contains("CLOSED: cannot read"),
        "{}",
        robot.host.output()
    );
}

#[test]
fn a_stop_of_a_whole_host_is_lifted_only_by_who_means_it() {
    let mut robot = Robot::new(&[("laptop", "operator")]);
    let at = format!("127.0.0.1:{}", robot.port);
    robot.host.kill();
    // Which toolboxes were latched is not known any more, so all are.
    fs::write(
        robot.scene.sandbox.path("state/ovos-tools/fabric/latches.json"),
        "?",
    )
    .unwrap();
    robot.restart();
    let mut laptop = Assistant::new("laptop", &robot);
    let stop_id = laptop.until_latched();
    let asked = json!({ "toolbox_id": "testbed", "stop_id": stop_id });
    let answer = laptop.client.ask("ovos.tools.resume", &asked);
    let why = answer["toolboxes"][0]["error"].as_str().unwrap_or_default();
    let (_, command) = why
        .split_once("resume-all robot1 ADDRESS ")
        .unwrap_or_else(|| panic!("{answer}"));
    let all = command.trim_end_matches(['`', '.']);
    let (lifted, output) = fabric(
        &laptop.scene.sandbox,
        &["resume-all", "robot1", &at, "stop-other"],
    );
    assert!(!lifted && output.contains("not the stop in force"), "{output}");
    succeeds(&laptop.scene.sandbox, &["resume-all", "robot1", &at, all]);
    laptop.resume();
    let output = laptop.doctor(&robot);
    assert!(!output.contains("EMERGENCY STOP"), "{output}");
}

#[test]
fn another_machine_at_the_address_of_the_host_is_not_believed() {
    let mut robot = Robot::new(&[("laptop", "operator"), ("robot2", "viewer")]);
    let mut laptop = Assistant::new("laptop", &robot);
    let other = Scene::new(&json!({}));
    succeeds(
        &other.sandbox,
        &["join", robot.invitation("robot2").to_str().unwrap()],
    );
    succeeds(&other.sandbox, &["allow", "laptop", "--role", "operator"]);
    robot.host.kill();
    let _other = start_host(&other, robot.port, &[]);
    toolbox_until(&mut laptop.client, "testbed", "who is there", |toolbox| {
        let why = toolbox["backend"]["reason"].as_str().unwrap_or_default();
        why.contains("is `robot2`, not `robot1`")
    });
    let refused = laptop.client.invoke("set_mark", &json!({}));
    let text = refused["error"].as_str().unwrap_or_default().to_owned();
    assert!(text.contains("cannot reach host"), "{refused}");
}

#[test]
fn what_is_wrong_between_two_machines_is_said() {
    let sandbox = Sandbox::new();
    let (well, output) = fabric(&sandbox, &["status"]);
    assert!(
        !well && output.contains("has not joined a fabric yet"),
        "{output}"
    );
    succeeds(&sandbox, &["init", "robot1"]);
    let free = crate::support::process::free_port();
    for (address, expected) in [
        (format!("127.0.0.1:{free}"), "nothing listens on"),
        ("tcp/127.0.0.1:1".to_owned(), "protocol tcp, expected tls"),
        (
            "no-such-machine.invalid".to_owned(),
            "is not known on this network",
        ),
    ] {
        let (well, output) = fabric(&sandbox, &["doctor", "robot2", &address]);
        assert!(!well && output.contains(expected), "{address}: {output}");
    }
    let identity = sandbox.path("config/ovos-tools/fabric/identity.json");
    let text = fs::read_to_string(&identity).unwrap();
    for (key, value, expected) in [
        ("valid_until", 1000, "the certificate of `robot1` ended"),
        (
            "valid_from",
            u64::from(u32::MAX),
            "the clock of this machine is wrong",
        ),
    ] {
        let mut changed: serde_json::Value = serde_json::from_str(&text).unwrap();
        changed[key] = json!(value);
        fs::write(&identity, changed.to_string()).unwrap();
        let (well, output) = fabric(&sandbox, &["status"]);
        assert!(!well && output.contains(expected), "{output}");
        let (started, output) = fabric(&sandbox, &["host", "--listen", "127.0.0.1:1"]);
        assert!(!started && output.contains(expected), "{output}");
    }
}
