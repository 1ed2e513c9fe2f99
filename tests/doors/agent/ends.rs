//! Runs that people, stops and the death of the agent end while something moves.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::agent::model::{Model, Reply, call, calls, finish};
use crate::agent::stage::{Stage, command, end};
use crate::support::process::Process;
use crate::support::scene::{assert_halted, monotonic_ns};

/// By when a run has ended its calls after a stop, on a machine that is busy with tests.
const PROMPT: Duration = Duration::from_secs(4);

/// A minute of motion, in steps of 20 ms.
fn long() -> Value {
    json!({"step_ms": 20, "steps": 3000, "timeout_ms": 60_000})
}

#[test]
fn people_and_stops_end_a_run_that_moves_something_and_nothing_is_commanded_afterwards() {
    type Act = fn(&mut Stage, &Process);
    let rows: [(&str, &str, i32, Act); 8] = [
        ("the user says stop", "user_stop", 21, |stage, _| {
            stage.client.send("ovos.stop", &json!({}));
        }),
        ("an emergency stop", "latched", 20, |stage, _| {
            stage.client.ask("ovos.tools.stop", &json!({}));
        }),
        ("an emergency stop by a tool", "latched", 20, |stage, _| {
            stage.client.ask("ovos.tools.invoke", &json!({"name": "stop"}));
        }),
        ("Ctrl-C", "operator", 22, |_, agent| agent.signal(Signal::INT)),
        ("a closed terminal", "operator", 22, |_, agent| {
            agent.signal(Signal::HUP);
        }),
        ("a cancel of its call", "operator", 22, |stage, _| {
            let status = stage.client.ask("ovos.tools.status", &json!({}));
            let call_id = status["calls"][0]["call_id"].clone();
            stage
                .client
                .ask("ovos.tools.cancel", &json!({ "call_id": call_id }));
        }),
        ("its time", "time", 12, |_, _| {}),
        // Its calls are on another toolbox, which knows nothing of that stop.
        ("a stop of another toolbox", "latched", 20, |stage, _| {
            let other = json!({"toolbox_id": "testbed_dup"});
            stage.client.ask("ovos.tools.stop", &other);
        }),
    ];
    for (name, reason, code, act) in rows {
        let mut stage = Stage::new(&json!({"budgets": {"time_ms": 8000}}));
        let model = Model::new(vec![call("assemble", long()), call("assemble", long())]);
        let agent = stage.agent(&model, "move", &[]);
        stage.scene.until_moving("agent-");
        act(&mut stage, &agent);
        let acted = Instant::now();
        let ended = end(agent);
        let within = acted.elapsed();
        assert!(
            reason == "time" || within < PROMPT,
            "{name}: only after {within:?}"
        );
        assert_eq!(ended.reason(), reason, "{name}: {}", ended.output);
        assert_eq!(ended.status.code(), Some(code), "{name}: {}", ended.output);
        assert_halted(&stage.scene.motors());
        assert_eq!(model.requests().len(), 1, "{name}: the model was asked again");
        stage.assert_at_rest();
    }
}

#[test]
fn a_machine_that_a_person_has_is_not_commanded_also_when_other_ends_follow() {
    // The time of the run is up while the person flies, and testbed is no vehicle that ends its calls by itself.
    let mut stage = Stage::new(&json!({"budgets": {"time_ms": 4000}}));
    let brief = json!({"step_ms": 100, "steps": 30, "subsystems": ["base"], "timeout_ms": 60_000});
    let model = Model::new(vec![call("assemble", brief.clone()), call("assemble", brief)]);
    let agent = stage.agent(&model, "move", &[]);
    stage.scene.until_moving("agent-");
    let event = json!({"name": "emit_event", "args": {"kind": "pilot_override"}});
    stage.client.ask("ovos.tools.invoke", &event);
    let ended = end(agent);
    assert_eq!(
        (ended.reason(), ended.status.code()),
        ("takeover", Some(23)),
        "{}",
        ended.output
    );
    assert_eq!(ended.json["halted"], Value::Null);
    assert_eq!(model.requests().len(), 1, "the model was asked again");
    let motors = stage.scene.motors();
    let halts: Vec<&str> = motors
        .iter()
        .map(|motor| motor.kind.as_str())
        .filter(|kind| ["halt", "emergency"].contains(kind))
        .collect();
    assert!(halts.is_empty(), "it was commanded: {halts:?}");
    stage.assert_at_rest();
}

#[test]
fn a_key_stops_the_run_also_where_stdin_is_no_terminal() {
    use std::io::Write as _;
    let mut stage = Stage::new(&json!({}));
    let model = Model::new(vec![call("assemble", long())]);
    let mut command = command(&stage.scene);
    command
        .args(["--url", &model.url, "--goal", "move", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // Without a terminal of its own, as a service has none.
    let mut agent = setsid(command).spawn().unwrap();
    stage.scene.until_moving("agent-");
    agent.stdin.as_mut().unwrap().write_all(b"s").unwrap();
    let output = agent.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(22), "{output:?}");
    assert_halted(&stage.scene.motors());
    stage.assert_at_rest();
}

/// The command in a session of its own.
fn setsid(command: std::process::Command) -> std::process::Command {
    let mut outer = std::process::Command::new("setsid");
    outer
        .arg("--wait")
        .arg(command.get_program())
        .args(command.get_args());
    outer.env_clear();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            outer.env(name, value);
        }
    }
    outer.current_dir(command.get_current_dir().unwrap());
    outer
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    outer
}

#[test]
fn what_moves_for_an_agent_that_is_killed_comes_to_rest_within_a_second() {
    let mut stage = Stage::new(&json!({}));
    let model = Model::new(vec![call("assemble", long())]);
    let mut agent = stage.agent(&model, "move", &[]);
    stage.scene.until_moving("agent-");
    agent.kill();
    let killed = monotonic_ns();
    let end = Instant::now() + Duration::from_secs(30);
    let halted = stage.scene.until_motors("halt", |motors| {
        motors
            .iter()
            .find(|motor| motor.at > killed && motor.kind == "halt")
            .map(|motor| motor.at)
    });
    let within = Duration::from_nanos(halted - killed);
    println!("halted {within:?} after the kill");
    assert!(within < Duration::from_millis(1500), "{within:?}");
    while stage.client.ask("ovos.tools.status", &json!({}))["calls"] != json!([]) {
        assert!(Instant::now() < end, "its call goes on");
    }
    assert_halted(&stage.scene.motors());
}

#[test]
fn a_stop_of_the_model_is_carried_out_first_and_ends_the_run() {
    let mut stage = Stage::new(&json!({}));
    let model = Model::new(vec![calls(&[
        ("assemble", long()),
        ("emergency_stop", json!({"why": "danger"})),
    ])]);
    let ended = stage.run(&model, &[]);
    assert_eq!(ended.reason(), "latched", "{}", ended.output);
    let why = ended.json["end"]["why"].as_str().unwrap();
    assert!(
        why.starts_with("the model called emergency_stop: Everything is stopped"),
        "{why}"
    );
    let status = stage.client.ask("ovos.tools.status", &json!({}));
    assert_eq!(status["toolboxes"][0]["latched"], true);
    assert!(
        stage
            .scene
            .motors()
            .iter()
            .all(|motor| motor.kind == "emergency" || motor.kind == "halt")
    );
}

#[test]
fn calls_that_share_nothing_run_together_and_the_others_in_order() {
    let stage = Stage::new(&json!({}));
    let moves = |part: &str| {
        let args = json!({"step_ms": 100, "steps": 4, "subsystems": [part]});
        ("assemble", args)
    };
    let model = Model::new(vec![
        calls(&[moves("left_arm"), moves("right_arm"), moves("left_arm")]),
        finish(),
    ]);
    let ended = stage.run(&model, &[]);
    assert_eq!(ended.reason(), "done", "{}", ended.output);
    let motors = stage.scene.motors();
    let mut runs: Vec<(String, String, u64, u64)> = Vec::new();
    for motor in &motors {
        let id = motor.run.split('/').next().unwrap().to_owned();
        match runs.iter_mut().find(|(run, ..)| *run == id) {
            Some((_, _, _, last)) => *last = motor.at,
            None => runs.push((id, motor.subsystem.clone(), motor.at, motor.at)),
        }
    }
    assert_eq!(runs.len(), 3, "{runs:?}");
    assert!(runs[1].2 < runs[0].3, "not together: {runs:?}");
    assert!(
        runs[2].2 > runs[0].3 && runs[2].2 > runs[1].3,
        "not in order: {runs:?}"
    );
}

#[test]
fn a_call_on_hardware_waits_for_a_person_and_the_model_is_told_how() {
    let stage = Stage::on_hardware();
    let model = Model::new(vec![
        call("assemble", json!({"steps": 1})),
        Reply::Says(json!({"content": "", "tool_calls": [{"id": "f", "function": {
            "name": "finish", "arguments": {"reached": false, "summary": "A person has to approve it."}}}]})),
    ]);
    let ended = stage.run(&model, &[]);
    assert_eq!(
        (ended.reason(), ended.status.code()),
        ("gave_up", Some(1)),
        "{}",
        ended.output
    );
    let content = model.messages("tool")[0]["content"].as_str().unwrap().to_owned();
    assert!(content.contains("`ovos-tools approve "), "{content}");
    assert!(!content.contains("token"), "{content}");
    assert!(stage.scene.motors().is_empty());
}

#[test]
fn pictures_of_tools_go_to_models_that_take_them() {
    let items = json!([{"type": "image", "mime_type": "image/png", "data": "aGVsbG8="}]);
    for vision in [true, false] {
        let stage = Stage::new(&json!({ "vision": vision }));
        let model = Model::new(vec![call("show", json!({ "items": items })), finish()]);
        let ended = stage.run(&model, &[]);
        assert_eq!(ended.reason(), "done", "{}", ended.output);
        let requests = model.requests();
        let messages = requests[1]["messages"].as_array().unwrap();
        let picture = messages.iter().find(|message| message["content"].is_array());
        let url = picture.map(|message| message["content"][1]["image_url"]["url"].clone());
        let expected = vision.then(|| json!("data:image/png;base64,aGVsbG8="));
        assert_eq!(url, expected, "{messages:#?}");
    }
}

#[test]
fn a_dry_run_reads_and_plans_and_moves_nothing() {
    let stage = Stage::new(&json!({}));
    let model = Model::new(vec![
        calls(&[
            ("add", json!({"a": 1, "b": 2})),
            ("assemble", json!({})),
            ("set_mark", json!({"mark": 1})),
        ]),
        finish(),
    ]);
    let ended = stage.run(&model, &["--dry-run"]);
    assert_eq!(ended.reason(), "done", "{}", ended.output);
    let messages = model.messages("tool");
    assert_eq!(messages[0]["content"], "{\"result\":3}");
    let plan: Value = serde_json::from_str(messages[1]["content"].as_str().unwrap()).unwrap();
    assert_eq!(plan["dry_run"], true, "{plan}");
    assert_eq!(plan["would"]["waves"].as_array().unwrap().len(), 4, "{plan}");
    assert!(stage.scene.motors().is_empty());
}
