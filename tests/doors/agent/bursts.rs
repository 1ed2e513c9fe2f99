//! Many calls in one answer: what only reads begins in the order of the answer, and a stop is carried out whatever stands beside
//! its name.

use serde_json::{Value, json};

use crate::agent::model::{Model, Reply, calls, finish};
use crate::agent::stage::{Stage, made};
use crate::stop_arguments::STOP_ARGUMENTS;

/// How many answers with a burst there are.
fn bursts() -> u64 {
    std::env::var("BURSTS").map_or(100, |number| number.parse().unwrap())
}

fn stage() -> Stage {
    Stage::new(
        &json!({"budgets": {"steps": 1000, "calls": 10_000, "time_ms": 600_000, "tokens": 10_000_000}}),
    )
}

#[test]
fn calls_begin_in_the_order_of_the_answer() {
    let mut stage = stage();
    let script = (0..bursts()).map(|burst| {
        let adds: Vec<(&str, Value)> = (0..6).map(|at| ("add", json!({"a": burst, "b": at}))).collect();
        calls(&adds)
    });
    let model = Model::new(script.chain([finish()]).collect());
    let agent = stage.agent(&model, "add", &[]);
    for burst in 0..bursts() {
        let mut starts = Vec::new();
        stage.client.until("six calls", |message| {
            if message["type"] == "ovos.tools.invoke" && message["data"]["args"]["a"] == burst {
                starts.push(message["data"]["args"]["b"].as_u64().unwrap());
            }
            (starts.len() == 6).then_some(())
        });
        assert_eq!(starts, [0, 1, 2, 3, 4, 5], "burst {burst}");
    }
    let ended = crate::agent::stage::end(agent);
    assert_eq!(ended.reason(), "done", "{}", ended.output);
}

#[test]
fn stop_moving_is_carried_out_and_nothing_else_of_its_answer() {
    let mut stage = stage();
    let record = stage.scene.sandbox.path("record.jsonl");
    let moves = |part: &str| json!({"subsystems": [part], "steps": 5, "step_ms": 1});
    let burst = || {
        calls(&[
            ("assemble", moves("left_arm")),
            ("assemble", moves("right_arm")),
            ("stop_moving", json!({})),
            ("assemble", moves("base")),
        ])
    };
    let script = (0..bursts()).map(|_| burst());
    let model = Model::new(script.chain([finish()]).collect());
    let ended = stage.run(&model, &["--record", record.to_str().unwrap()]);
    assert_eq!(ended.reason(), "done", "{}", ended.output);
    let made = made(&record);
    for (at, call) in made
        .iter()
        .take(4 * usize::try_from(bursts()).unwrap())
        .enumerate()
    {
        let expected = if at % 4 == 2 { "completed" } else { "not_made" };
        assert_eq!(call["status"], expected, "{at}: {call}");
    }
    assert!(
        stage.scene.motors().iter().all(|motor| motor.kind != "step"),
        "it moved"
    );
    stage.assert_at_rest();
}

#[test]
fn every_stop_is_carried_out_whatever_its_arguments_are() {
    let mut stage = stage();
    for form in STOP_ARGUMENTS {
        // The last is a tool of the toolbox.
        for name in ["emergency_stop", "stop_moving", "stop"] {
            let mut function = json!({ "name": name });
            if let Some(form) = form {
                function["arguments"] = serde_json::from_str(form).unwrap();
            }
            let call = json!({"id": "s", "type": "function", "function": function});
            let says = Reply::Says(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
            let model = Model::new(vec![says, finish()]);
            let ended = stage.run(&model, &[]);
            let expected = if name == "stop_moving" { "done" } else { "latched" };
            assert_eq!(ended.reason(), expected, "{name} {form:?}: {}", ended.output);
            if name == "stop_moving" {
                let content = model.messages("tool")[0]["content"].as_str().unwrap().to_owned();
                assert!(content.contains("Nothing was running"), "{form:?}: {content}");
                continue;
            }
            let toolboxes = stage.client.ask("ovos.tools.status", &json!({}))["toolboxes"].clone();
            let mut toolboxes = toolboxes.as_array().unwrap().iter();
            let testbed = toolboxes
                .find(|toolbox| toolbox["toolbox_id"] == "testbed")
                .unwrap();
            assert_eq!(testbed["latched"], true, "{name} {form:?}");
            let resume = json!({"toolbox_id": "testbed", "stop_id": testbed["stop_id"]});
            stage.client.ask("ovos.tools.resume", &resume);
        }
    }
}
