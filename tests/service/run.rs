//! Runs: calls made of calls, over a real bus. Values go from result to argument, what is ready begins together, and after a
//! failure, a stop or a cancel nothing begins any more; each run has one answer with a report for each step.

mod ends;
mod steps;

use crate::support::client::Client;
use crate::support::process::Process;
use crate::support::scene::Scene;
use serde_json::{Value, json};

const RUN: &str = "ovos.tools.run";

struct Stage {
    client: Client,
    scene: Scene,
    _bus: Process,
    _service: Process,
}

fn stage() -> Stage {
    stage_with(&json!({}), &json!({}))
}

/// With these keys of the service, and these at the top.
fn stage_with(keys: &Value, top: &Value) -> Stage {
    let scene = Scene::new(keys);
    scene.configure(keys, top);
    let (bus, service, client) = scene.open();
    Stage {
        client,
        scene,
        _bus: bus,
        _service: service,
    }
}

impl Stage {
    /// Sends a run with the call_id `r`.
    fn send(&mut self, steps: &Value) {
        self.client.send(RUN, &json!({ "steps": steps, "call_id": "r" }));
    }

    /// Runs steps to their answer.
    #[track_caller]
    fn run(&mut self, steps: &Value) -> Value {
        self.client.ask(RUN, &json!({ "steps": steps }))
    }

    /// The only answer of the run `r`.
    #[track_caller]
    fn answer(&mut self) -> Value {
        self.client.until_answered([&"r".to_owned()]);
        self.client.invoke("ping", &json!({}));
        self.client.settled("r")
    }

    #[track_caller]
    fn marks(&mut self) -> u64 {
        let counted = self.client.invoke("count_marks", &json!({}));
        counted["result"]["marks"].as_u64().unwrap()
    }
}

fn step(id: &str, name: &str, args: Value) -> Value {
    json!({ "id": id, "name": name, "args": args })
}

fn after(id: &str, name: &str, after: &[&str]) -> Value {
    json!({ "id": id, "name": name, "after": after })
}

/// Moves an arm until it is ended.
fn moves(id: &str, arm: &str) -> Value {
    step(
        id,
        "assemble",
        json!({ "subsystems": [arm], "step_ms": 2, "steps": 100_000, "timeout_ms": 300_000 }),
    )
}

/// The status of each step.
fn statuses(answer: &Value) -> String {
    let steps = answer["steps"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let line = |step: &Value| {
        format!(
            "{} {}",
            step["id"].as_str().unwrap(),
            step["status"].as_str().unwrap()
        )
    };
    steps.iter().map(line).collect::<Vec<_>>().join(", ")
}

#[track_caller]
fn ended(answer: &Value, kind: &str, expected: &str) {
    assert_eq!(statuses(answer), expected, "{answer}");
    assert_eq!(answer["ok"], false, "{answer}");
    let error = answer["error"].as_str().unwrap_or_default();
    assert!(error.starts_with(&format!("{kind}: ")), "no {kind}: {answer}");
    for step in answer["steps"].as_array().unwrap() {
        let began = step["status"] != "not_started";
        assert_eq!(step.get("reason").is_none(), began, "{step}");
    }
}
