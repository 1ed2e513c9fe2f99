//! A robot's toolbox on another machine: used as one of this machine, stopped, and lost in every way.

mod certificates;
mod contact;
mod faults;
mod fleet;
mod machines;
mod rights;

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::scene::{assert_still, from_first};
use crate::support::status::toolbox_until;
use machines::{Assistant, Robot};

/// How long a motion may last after what should end it, by the clock of the machine: `fabric.md` says 0.6 s.
const AT_REST: Duration = Duration::from_millis(600);

/// A motion that lasts until something ends it.
fn long_motion() -> serde_json::Value {
    json!({ "steps": 2000, "step_ms": 5 })
}

#[test]
fn a_toolbox_of_another_machine_is_used_as_one_of_this_machine() {
    let robot = Robot::new(&[("laptop", "operator")]);
    let mut laptop = Assistant::new("laptop", &robot);
    let status = laptop.until_reached();
    assert_eq!(status["backend"]["simulated"], true, "{status}");
    assert!(
        status["description"].as_str().unwrap().contains("robot1"),
        "{status}"
    );
    // Toolbox and tools are named by the machine that they are on.
    assert_eq!(status["host"], "robot1", "{status}");
    let listed = laptop.client.ask(
        "ovos.tools.list",
        &json!({ "detail": true, "toolbox_id": "testbed" }),
    );
    let tools = listed["tools"].as_array().unwrap();
    let named = tools.iter().filter(|tool| tool["meta"]["host"] == "robot1");
    assert!(!tools.is_empty() && named.count() == tools.len(), "{listed}");
    let shown = laptop
        .scene
        .sandbox
        .command(env!("CARGO_BIN_EXE_ovos-tools"))
        .arg("status")
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let is_row = |line: &str, cells: [&str; 2]| line.split_whitespace().take(2).eq(cells);
    for cells in [["TOOLBOX", "HOST"], ["testbed", "robot1"]] {
        assert!(shown.lines().any(|line| is_row(line, cells)), "{shown}");
    }
    let client = &mut laptop.client;
    toolbox_until(client, "robot1_dup", "contact with its host", |toolbox| {
        toolbox["tools"] == 1
    });
    assert_eq!(
        client.invoke("add", &json!({ "a": 1, "b": 2 }))["result"]["result"],
        3
    );
    let big = "123456789012345678901234567890";
    let sum = client.invoke(
        "add",
        &serde_json::from_str(&format!(r#"{{"a": {big}, "b": 0}}"#)).unwrap(),
    );
    assert_eq!(sum["result"]["result"].to_string(), big, "{sum}");
    let failed = client.invoke("fail", &json!({ "message": "on purpose" }));
    assert!(
        failed["error"].as_str().unwrap().contains("on purpose"),
        "{failed}"
    );
    // Another toolbox under another id.
    let asked = json!({ "name": "dup", "toolbox_id": "robot1_dup", "args": {} });
    let dup = client.ask("ovos.tools.invoke", &asked);
    assert_eq!(dup["result"], json!({ "owner": "testbed_dup" }), "{dup}");
    let plan = client.ask("ovos.tools.plan", &json!({ "name": "assemble", "args": {} }));
    assert_eq!(plan["waves"].as_array().map(Vec::len), Some(4), "{plan}");
    // A call of several waves, with progress and a result that the toolbox makes.
    let short = json!({ "steps": 2, "step_ms": 5 });
    client.send(
        "ovos.tools.invoke",
        &json!({ "name": "assemble", "args": short, "call_id": "a", "progress": true }),
    );
    let mut kinds = Vec::new();
    let done = client.until("an answer", |frame| {
        if frame["type"] == "ovos.tools.invoke.progress" {
            kinds.push(frame["data"]["kind"].as_str().unwrap().to_owned());
        }
        (frame["type"] == "ovos.tools.invoke.response").then(|| frame["data"].clone())
    });
    assert_eq!(done["result"]["success"], true, "{done}");
    assert!(kinds.iter().any(|kind| kind == "update"), "{kinds:?}");
    // Content, as a file of this machine.
    let shown = client.ask(
        "ovos.tools.invoke",
        &json!({ "name": "show", "args": { "text": "from afar" }, "content": "inline" }),
    );
    assert_eq!(shown["content"][0]["data"], "from afar", "{shown}");
    // An event, and tools that come later.
    client.send(
        "ovos.tools.invoke",
        &json!({ "name": "emit_event", "args": { "kind": "bell", "data": { "n": 1 } }, "call_id": "bell" }),
    );
    let (mut rang, mut answer) = (false, None);
    client.until("the event, and the answer of what emitted it", |frame| {
        rang |= frame["type"] == "ovos.tools.event" && frame["data"]["kind"] == "bell";
        if frame["type"] == "ovos.tools.invoke.response" {
            answer = Some(frame["data"].clone());
        }
        let failed = answer.as_ref().filter(|answer| !answer["error"].is_null());
        assert!(failed.is_none(), "{failed:?}");
        (rang && answer.is_some()).then_some(())
    });
    client.send(
        "ovos.tools.invoke",
        &json!({ "name": "grow", "args": { "tools": 3 } }),
    );
    client.until("the news of more tools", |frame| {
        (frame["type"] == "ovos.tools.event" && frame["data"]["kind"] == "tools_changed").then_some(())
    });
    assert!(client.invoke("grown_2", &json!({}))["error"].is_null());
    let reloaded = client.ask("ovos.tools.reload", &json!({}));
    assert!(reloaded["error"].is_null(), "{reloaded}");
    assert_eq!(
        client.invoke("add", &json!({ "a": 1, "b": 2 }))["result"]["result"],
        3,
        "after a reload"
    );
}

#[test]
fn a_cancel_a_halt_and_a_stop_reach_the_other_machine_at_once() {
    let robot = Robot::new(&[("laptop", "operator")]);
    let mut laptop = Assistant::new("laptop", &robot);
    for (call_id, topic, data) in [
        (
            "cancelled",
            "ovos.tools.cancel",
            json!({ "call_id": "cancelled" }),
        ),
        ("halted", "ovos.stop", json!({})),
        ("stopped", "ovos.tools.stop", json!({ "toolbox_id": "testbed" })),
    ] {
        let from = robot.scene.motors().len();
        laptop.client.call(call_id, "assemble", &long_motion());
        robot.until_moving(from);
        let asked = crate::support::scene::monotonic_ns();
        laptop.client.send(topic, &data);
        laptop.client.until_answered([&call_id.to_owned()]);
        let motors = robot.motors(from);
        let halted =
            from_first(&motors, &["halt", "emergency"]).unwrap_or_else(|| panic!("{call_id}: no halt"));
        let took = Duration::from_nanos(halted[0].at.saturating_sub(asked));
        assert!(
            took < Duration::from_millis(250),
            "{call_id}: halted after {took:?}"
        );
        if topic == "ovos.tools.stop" {
            let stopped = from_first(&motors, &["emergency"]).unwrap();
            assert_still(stopped);
        }
    }
    laptop.until_latched();
    let output = laptop.doctor(&robot);
    assert!(output.contains("EMERGENCY STOP"), "{output}");
    let refused = laptop.client.invoke("assemble", &json!({}));
    assert!(
        refused["error"].as_str().unwrap().contains("emergency stop"),
        "{refused}"
    );
    assert_eq!(
        laptop.client.invoke("add", &json!({ "a": 1, "b": 2 }))["result"]["result"],
        3,
        "reading goes on"
    );
    laptop.resume();
    let output = laptop.doctor(&robot);
    assert!(!output.contains("EMERGENCY STOP"), "{output}");
    // Where all is well, the look leaves no trace of a connection that broke.
    assert!(!robot.host.output().contains("handshake"), "{}", robot.host.log());
    let done = laptop
        .client
        .invoke("assemble", &json!({ "steps": 1, "step_ms": 1 }));
    assert_eq!(done["result"]["success"], true, "{done}");
}

#[test]
fn two_services_hear_of_each_others_stops_once() {
    let robot = Robot::new(&[("laptop", "operator"), ("tablet", "operator")]);
    let mut laptop = Assistant::new("laptop", &robot);
    let mut tablet = Assistant::new("tablet", &robot);
    let stop_of = |output: &str| {
        let (_, stop) = output.split_once("EMERGENCY STOP ")?;
        Some(stop.split(' ').next()?.to_owned())
    };
    tablet
        .client
        .ask("ovos.tools.stop", &json!({ "toolbox_id": "testbed" }));
    laptop.until_latched();
    let first = stop_of(&laptop.doctor(&robot)).expect("a stop");
    // Were they to echo each other, the host would have another stop soon.
    let end = Instant::now() + Duration::from_secs(1);
    while Instant::now() < end {
        assert_eq!(stop_of(&laptop.doctor(&robot)).as_ref(), Some(&first));
    }
    // A stop of a person is one of its own, and no resume that does not know of it lifts it.
    let known = laptop.until_latched();
    tablet
        .client
        .ask("ovos.tools.stop", &json!({ "toolbox_id": "testbed" }));
    assert_ne!(stop_of(&laptop.doctor(&robot)), Some(first));
    let asked = json!({ "toolbox_id": "testbed", "stop_id": known });
    let answer = laptop.client.ask("ovos.tools.resume", &asked);
    assert_eq!(answer["toolboxes"][0]["ok"], false, "{answer}");
    assert!(stop_of(&laptop.doctor(&robot)).is_some(), "{answer}");
    laptop.resume();
    let end = Instant::now() + Duration::from_secs(1);
    while Instant::now() < end {
        assert_eq!(stop_of(&laptop.doctor(&robot)), None, "nobody stops it again");
    }
    // The other service holds its own latch until its operator lifts it.
    assert_eq!(
        crate::support::status::toolbox(&mut tablet.client, "testbed")["latched"],
        true
    );
    tablet.resume();
}
