//! Goals over the bus.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::model::{Model, call, finish};
use crate::agent::stage::{Stage, command};
use crate::support::client::Client;
use crate::support::process::{DEADLINE, Process};
use crate::support::scene::{assert_halted, from_first};

/// An agent that waits for goals.
fn waiting(stage: &Stage, model: &Model) -> Process {
    let mut command = command(&stage.scene);
    command.args(["--url", &model.url, "--serve"]);
    let mut agent = Process::start("agent", &stage.scene.sandbox, command);
    agent.until("waits", |agent| {
        agent.output().contains("waits for").then_some(())
    });
    agent
}

/// Asks until the agent hears: its line comes a moment before.
fn run(client: &mut Client, request: &Value) -> Value {
    let answer = client.ask_within("ovos.tools.agent.run", request, Duration::from_secs(60));
    answer.expect("an answer")
}

#[test]
fn a_goal_over_the_bus_is_pursued_told_about_and_cancelled() {
    let mut stage = Stage::new(&json!({"budgets": {"steps": 5}}));
    let long = json!({"step_ms": 20, "steps": 3000, "timeout_ms": 60_000});
    let model = Model::new(vec![
        call("add", json!({"a": 20, "b": 22})),
        finish(),
        call("assemble", long.clone()),
        call("assemble", long),
    ]);
    let mut agent = waiting(&stage, &model);
    let mut other = Client::connect(stage.scene.port);

    let request = json!({"goal": "sum", "run_id": "r1", "progress": true, "budgets": {"steps": 50}});
    let ident = stage.client.send("ovos.tools.agent.run", &request);
    let mut kinds = Vec::new();
    let answer = stage.client.until("the answer", |frame| {
        match frame["type"].as_str().unwrap() {
            "ovos.tools.agent.progress" => {
                assert_eq!(frame["context"]["ident"], ident.as_str());
                kinds.push(frame["data"]["kind"].as_str().unwrap().to_owned());
                if frame["data"]["kind"] == "asking" {
                    // Wider than the configuration is as wide as the configuration.
                    let left = frame["data"]["left"]["steps"].as_u64().unwrap();
                    assert!(left < 5, "{frame}");
                }
                None
            }
            "ovos.tools.agent.run.response" => Some(frame["data"].clone()),
            _ => None,
        }
    });
    assert_eq!(
        (&answer["ok"], &answer["reason"], &answer["run_id"]),
        (&json!(true), &json!("done"), &json!("r1"))
    );
    assert_eq!(answer["text"], "It is done.");
    assert_eq!(kinds, ["began", "asking", "call", "came", "asking", "ended"]);

    for (request, error) in [
        (json!({}), "ValueError: missing field `goal`"),
        (json!({"goal": " "}), "ValueError: goal: expected"),
        (
            json!({"goal": "x", "run_id": "a b"}),
            "ValueError: run_id: expected",
        ),
        (
            json!({"goal": "x", "budgets": {"wings": 2}}),
            "ValueError: unknown field",
        ),
    ] {
        let answer = run(&mut stage.client, &request);
        assert!(answer["error"].as_str().unwrap().starts_with(error), "{answer}");
    }
    let unknown = stage
        .client
        .ask("ovos.tools.agent.cancel", &json!({"run_id": "r1"}));
    assert_eq!(unknown["cancelled"], false, "{unknown}");

    stage
        .client
        .send("ovos.tools.agent.run", &json!({"goal": "move", "run_id": "r2"}));
    stage.scene.until_moving("agent-");
    let busy = run(&mut other, &json!({"goal": "move, too"}));
    assert!(
        busy["error"].as_str().unwrap().starts_with("BusyError: run 'r2'"),
        "{busy}"
    );
    let cancelled = other.ask("ovos.tools.agent.cancel", &json!({"run_id": "r2"}));
    assert_eq!(cancelled["cancelled"], true, "{cancelled}");
    let answer = stage.client.until("the answer", |frame| {
        (frame["type"] == "ovos.tools.agent.run.response" && frame["data"]["run_id"] == "r2")
            .then(|| frame["data"].clone())
    });
    assert_eq!(
        (&answer["ok"], &answer["reason"]),
        (&json!(false), &json!("operator")),
        "{answer}"
    );
    stage.assert_at_rest();

    // The stop of the session that asked ends its run.
    let mut user = Client::connect(stage.scene.port).in_session("someone");
    user.send("ovos.tools.agent.run", &json!({"goal": "move", "run_id": "r3"}));
    let end = Instant::now() + DEADLINE;
    while stage.client.ask("ovos.tools.status", &json!({}))["calls"] == json!([]) {
        assert!(Instant::now() < end, "nothing moves\n{}", agent.log());
    }
    user.send("ovos.stop", &json!({}));
    let answer = user.until("the answer", |frame| {
        (frame["type"] == "ovos.tools.agent.run.response" && frame["data"]["run_id"] == "r3")
            .then(|| frame["data"].clone())
    });
    assert_eq!(answer["reason"], "user_stop", "{answer}");
    let left = stage.client.ask("ovos.tools.status", &json!({}))["calls"].clone();
    assert_eq!(left, json!([]), "its calls go on");
    agent.signal(rustix::process::Signal::TERM);
    assert!(agent.end_within(Duration::from_secs(20)).success());
}

#[test]
fn an_agent_does_for_a_satellite_only_what_the_satellite_may_do() {
    let wave = || {
        call(
            "assemble",
            json!({"subsystems": ["left_arm"], "step_ms": 1, "steps": 1}),
        )
    };
    // The columns: the rule for satellites; the begin of the error of a run, or none if it runs; whether it moves something.
    for (rule, refused, moves) in [
        (
            json!({"decide": "deny"}),
            Some("PermissionError: hive:kitchen may not use 'agent.run'"),
            false,
        ),
        (
            json!({"tools": ["agent.run"], "decide": "deny"}),
            Some("PermissionError: hive:kitchen may not use 'agent.run'"),
            false,
        ),
        (json!({"effects": ["motion"], "decide": "deny"}), None, false),
        (json!({"tools": ["testbed__*"], "decide": "deny"}), None, false),
        (json!({"effects": ["motion"], "decide": "confirm"}), None, false),
        (json!({"tools": ["voice.join"], "decide": "deny"}), None, true),
    ] {
        let mut rule = rule;
        rule["who"] = json!("hive");
        let mut stage = Stage::with_policy(&json!([rule]));
        let model = Model::new(vec![wave(), finish(), wave(), finish(), wave(), finish()]);
        let _agent = waiting(&stage, &model);
        let mut satellite = Client::connect(stage.scene.port).via_satellite("kitchen");
        let answer = run(&mut satellite, &json!({"goal": "wave"}));
        let error = answer["error"].as_str().unwrap_or_default();
        match refused {
            Some(text) => assert!(
                error.starts_with(text) && error.contains("hive:kitchen"),
                "{rule}: {answer}"
            ),
            None => assert!(!error.starts_with("PermissionError"), "{rule}: {answer}"),
        }
        assert_eq!(stage.scene.motors().is_empty(), !moves, "{rule}: {answer}");
        if refused.is_none() && !moves {
            let messages = json!(model.messages("tool")).to_string();
            assert!(
                messages.contains("hive:kitchen") || messages.contains("ConfirmationRequired"),
                "{rule}: {messages}"
            );
        }
        if refused.is_none() {
            continue;
        }
        // A client that the rule is not about has its goals pursued.
        let before = stage.scene.motors().len();
        let answer = run(&mut stage.client, &json!({"goal": "wave"}));
        assert_eq!(answer["ok"], true, "{rule}: {answer}");
        assert!(stage.scene.motors().len() > before, "{rule}: {answer}");
    }
}

/// The answer to the run of this id.
fn answered(client: &mut Client, run_id: &str) -> Value {
    client.until("the answer", |frame| {
        (frame["type"] == "ovos.tools.agent.run.response" && frame["data"]["run_id"] == run_id)
            .then(|| frame["data"].clone())
    })
}

#[test]
fn a_run_is_answered_and_at_rest_when_the_agent_is_told_to_end_or_loses_the_bus() {
    let long = json!({"step_ms": 20, "steps": 3000, "timeout_ms": 60_000});
    for (name, reason) in [("SIGTERM", "operator"), ("a lost bus", "service")] {
        let mut stage = Stage::new(&json!({}));
        let model = Model::new(vec![call("assemble", long.clone())]);
        let mut agent = waiting(&stage, &model);
        let request = json!({"goal": "move", "run_id": "r1"});
        stage.client.send("ovos.tools.agent.run", &request);
        stage.scene.until_moving("agent-");
        if reason == "operator" {
            agent.signal(rustix::process::Signal::TERM);
        } else {
            // Its line for the end of the run.
            stage.outage(&mut agent, |agent| {
                agent.output().contains("\nservice ").then_some(())
            });
        }
        let answer = answered(&mut stage.client, "r1");
        assert_eq!(
            (&answer["ok"], &answer["reason"]),
            (&json!(false), &json!(reason)),
            "{name}: {answer}\n{}",
            agent.log()
        );
        // Over a lost bus the agent cannot say anything: the service halts what moves for a door that does not beat.
        stage
            .scene
            .until_motors("halt", |motors| from_first(motors, &["halt"]).map(drop));
        stage.client.until_phases(&[]);
        assert_halted(&stage.scene.motors());
        assert_eq!(model.requests().len(), 1, "{name}: the model was asked again");
        if reason == "operator" {
            assert!(agent.end_within(Duration::from_secs(20)).success(), "{name}");
            stage.assert_at_rest();
        } else {
            // It serves on.
            let next = run(&mut stage.client, &json!({"goal": " "}));
            assert!(
                next["error"].as_str().unwrap().starts_with("ValueError: goal"),
                "{next}"
            );
        }
    }
}
