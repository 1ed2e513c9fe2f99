//! Emergency stop, in every way: nothing is commanded after it, every call is answered once, and the latch holds
//! until this very stop is lifted, also across a restart of the service.

use std::time::Duration;

use crate::support::client::Client;
use crate::support::process::{DEADLINE, Process};
use crate::support::scene::{Scene, assert_still, from_first};
use rustix::process::Signal;
use serde_json::{Value, json};

struct Stage {
    scene: Scene,
    bus: Process,
    client: Client,
    service: Process,
    calls: Vec<String>,
}

/// One call moves, two wait for it, and one does something that moves nothing.
fn stage() -> Stage {
    let scene = Scene::new(&json!({}));
    let (bus, service, mut client) = scene.open();
    let calls = ["motion-0", "motion-1", "motion-2", "slow"]
        .map(str::to_owned)
        .to_vec();
    for call_id in &calls[..3] {
        client.call(
            call_id,
            "assemble",
            &json!({ "step_ms": 2, "steps": 100_000, "timeout_ms": 300_000 }),
        );
        let waiting = call_id != "motion-0";
        client.until_call(call_id, if waiting { "queued" } else { "running" });
    }
    client.call("slow", "slow", &json!({ "seconds": 300 }));
    client.until_call("slow", "running");
    scene.until_moving("motion-0");
    Stage {
        scene,
        bus,
        client,
        service,
        calls,
    }
}

/// Checks what holds after every emergency stop; returns the stop that holds testbed.
fn check_stopped(stage: &mut Stage) -> String {
    let Stage {
        scene,
        client,
        service,
        calls,
        ..
    } = stage;
    client.until_answered(calls.iter());
    client.invoke("ping", &json!({}));
    // Except the first: motion-0 has a report, of which the toolbox makes an output.
    for call_id in &calls[1..] {
        let answer = client.only_answer(call_id);
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(
            error.starts_with("EmergencyStop: "),
            "{call_id}: {answer}\n{}",
            service.log()
        );
    }
    assert_eq!(client.only_answer("motion-0")["result"]["success"], false);
    let motors = scene.motors();
    let stopped = from_first(&motors, &["emergency"]).expect("an emergency halt");
    assert_eq!(
        stopped.len(),
        1,
        "commanded after the emergency halt: {stopped:?}"
    );
    assert!(
        motors
            .iter()
            .all(|motor| motor.run == "-" || motor.run.starts_with("motion-0/")),
        "a queued call moved"
    );
    latch(client).expect("testbed is latched")
}

/// The stop that holds testbed.
fn latch(client: &mut Client) -> Option<String> {
    let status = client.ask("ovos.tools.status", &json!({}));
    let toolboxes = status["toolboxes"].as_array().unwrap();
    let testbed = toolboxes
        .iter()
        .find(|toolbox| toolbox["toolbox_id"] == "testbed")
        .expect("testbed");
    assert_eq!(testbed["latched"], testbed.get("stop_id").is_some(), "{testbed}");
    testbed["stop_id"].as_str().map(str::to_owned)
}

/// Checks what works and what does not while testbed is latched.
fn check_latched(client: &mut Client) {
    for (name, args) in [("assemble", json!({})), ("set_mark", json!({}))] {
        let answer = client.invoke(name, &args);
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(
            error.contains("Robot is in emergency stop state. Reset required."),
            "{name}: {answer}"
        );
    }
    assert_eq!(
        client.invoke("add", &json!({ "a": 1, "b": 2 }))["result"]["result"],
        3,
        "a read"
    );
    assert_eq!(
        client.invoke("brake", &json!({ "ms": 1 }))["result"]["held_ms"],
        1,
        "a safe tool"
    );
    let reset = client.invoke("reset_stop", &json!({}));
    assert!(
        reset["error"].as_str().unwrap().starts_with("PermissionError: "),
        "{reset}"
    );
}

fn resume(client: &mut Client, stop_id: &str) -> Value {
    let answer = client.ask(
        "ovos.tools.resume",
        &json!({ "toolbox_id": "testbed", "stop_id": stop_id }),
    );
    answer["toolboxes"][0].clone()
}

fn ask_to_stop(stage: &mut Stage, data: &Value) {
    let answer = stage.client.ask("ovos.tools.stop", data);
    assert_eq!(answer["toolboxes"][0]["ok"], true, "{answer}");
}

#[test]
fn over_the_bus() {
    let mut stage = stage();
    ask_to_stop(&mut stage, &json!({ "toolbox_id": "testbed" }));
    check_stopped(&mut stage);
    check_latched(&mut stage.client);
}

/// With any content of the frame beside its type.
#[test]
fn with_a_request_that_makes_no_sense() {
    let mut stage = stage();
    stage
        .client
        .send_text(r#"{"type": "ovos.tools.stop", "data": [1, "x"], "context": 7}"#);
    check_stopped(&mut stage);
    // An unknown name, or one of a wrong type, still stops something.
    for data in [
        json!({ "toolbox_id": "unknown" }),
        json!({ "toolbox_id": 5 }),
        json!({ "toolbox_id": null }),
    ] {
        let before = latch(&mut stage.client);
        ask_to_stop(&mut stage, &data);
        assert_ne!(latch(&mut stage.client), before, "{data}: a stop of its own");
    }
}

#[test]
fn as_a_tool() {
    let mut stage = stage();
    // It stops despite invalid arguments.
    let answer = stage.client.invoke("stop", &json!({ "why": ["?"] }));
    assert!(answer.get("error").is_none(), "{answer}");
    check_stopped(&mut stage);
}

#[test]
fn by_signal() {
    let mut stage = stage();
    stage.service.signal(Signal::USR1);
    check_stopped(&mut stage);
    check_latched(&mut stage.client);
}

#[test]
fn from_the_command_line_while_the_bus_is_frozen() {
    let mut stage = stage();
    stage.bus.signal(Signal::STOP);
    // The control socket answers in the place of the bus.
    let output = stage.scene.ours("stop", &["stop", "--timeout", "2"]).finish();
    assert!(output.contains("ovos-tools resume testbed stop-"), "{output}");
    assert_still(from_first(&stage.scene.motors(), &["emergency"]).unwrap());
    stage.bus.signal(Signal::CONT);
    check_stopped(&mut stage);
}

#[test]
fn from_the_command_line_over_the_bus() {
    let mut stage = stage();
    let output = stage.scene.ours("stop", &["stop"]).finish();
    assert!(output.contains("ovos-tools resume testbed stop-"), "{output}");
    check_stopped(&mut stage);
}

#[test]
fn the_latch_outlives_the_service_and_only_its_own_resume_lifts_it() {
    let mut stage = stage();
    ask_to_stop(&mut stage, &json!({}));
    let first = check_stopped(&mut stage);
    let Stage {
        scene,
        mut client,
        mut service,
        bus,
        ..
    } = stage;

    service.kill();
    let mut service = scene.service(&mut client);
    assert_eq!(
        latch(&mut client).as_ref(),
        Some(&first),
        "after a crash\n{}",
        service.log()
    );
    check_latched(&mut client);
    service.signal(Signal::TERM);
    assert!(service.end_within(DEADLINE).success());
    let mut service = scene.service(&mut client);
    assert_eq!(
        latch(&mut client).as_ref(),
        Some(&first),
        "after a restart\n{}",
        service.log()
    );

    ask_for_another(&mut client);
    let second = latch(&mut client).unwrap();
    assert_ne!(first, second);
    let refused = resume(&mut client, &first);
    assert_eq!(
        refused["ok"], false,
        "an old resume against a newer stop: {refused}"
    );
    assert!(
        refused["error"].as_str().unwrap().contains(&second),
        "it names the stop that holds: {refused}"
    );
    assert_eq!(latch(&mut client).as_ref(), Some(&second));

    client.invoke("configure", &json!({ "refuse_resume": true }));
    let refused = resume(&mut client, &second);
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("the button is still pressed"),
        "{refused}"
    );
    assert_eq!(
        latch(&mut client).as_ref(),
        Some(&second),
        "the toolbox may refuse"
    );
    client.invoke("configure", &json!({ "refuse_resume": false }));

    let before = scene.motors().len();
    assert_eq!(resume(&mut client, &second)["ok"], true);
    assert_eq!(latch(&mut client), None);
    assert_eq!(scene.motors().len(), before, "a resume moves nothing");
    assert_eq!(
        client.invoke("assemble", &json!({ "step_ms": 1, "steps": 1 }))["result"]["success"],
        true
    );

    scene.until_at_rest();
    service.kill();
    let service = scene.service(&mut client);
    assert_eq!(
        latch(&mut client),
        None,
        "what was lifted stays lifted\n{}",
        service.log()
    );
    drop(bus);
}

fn ask_for_another(client: &mut Client) {
    let answer = client
        .ask_within("ovos.tools.stop", &json!({}), Duration::from_secs(5))
        .expect("a further stop");
    assert_eq!(answer["toolboxes"][0]["ok"], true, "{answer}");
}
