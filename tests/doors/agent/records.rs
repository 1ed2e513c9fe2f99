//! Records of runs, their replay, and the switches of a run.

use serde_json::{Value, json};

use crate::agent::model::{Model, Reply, call, calls, finish};
use crate::agent::stage::{Stage, command, end, lines, made};
use crate::support::process::Process;

fn calls_of(record: &std::path::Path) -> Vec<(Value, Value)> {
    let call = |call: &Value| (call["name"].clone(), call["arguments"].clone());
    made(record).iter().map(call).collect()
}

#[test]
fn a_replay_makes_the_calls_of_its_record_without_a_model() {
    let stage = Stage::new(&json!({}));
    let model = Model::new(vec![
        calls(&[("add", json!({"a": 1, "b": 2})), ("fly", json!({}))]),
        call(
            "assemble",
            json!({"steps": 1, "step_ms": 1, "subsystems": ["base"]}),
        ),
        Reply::Says(
            json!({"content": "hm", "tool_calls": [{"function": {"name": "add", "arguments": "{bad"}}]}),
        ),
        finish(),
    ]);
    let first = stage.scene.sandbox.path("first.jsonl");
    let second = stage.scene.sandbox.path("second.jsonl");
    let ended = stage.run(
        &model,
        &["--record", first.to_str().unwrap(), "--max-rotation-deg", "90"],
    );
    assert_eq!(ended.reason(), "done", "{}", ended.output);
    let motors = stage.scene.motors().len();
    let requests = model.requests().len();

    let mut again = command(&stage.scene);
    again.args([
        "--replay",
        first.to_str().unwrap(),
        "--record",
        second.to_str().unwrap(),
        "--json",
    ]);
    let replayed = end(Process::start("replay", &stage.scene.sandbox, again));
    assert_eq!(replayed.reason(), "done", "{}", replayed.output);
    assert!(
        replayed.output.contains("replay: identical over 4 steps"),
        "{}",
        replayed.output
    );
    assert_eq!(model.requests().len(), requests, "the model was asked");
    assert_eq!(
        stage.scene.motors().len(),
        2 * motors,
        "the motion was made again"
    );

    assert_eq!(calls_of(&first), calls_of(&second));
    let (first, second) = (lines(&first), lines(&second));
    assert_eq!(first[0]["tools_sha256"], second[0]["tools_sha256"]);
    assert_eq!(second[0]["budgets"]["rotation_deg"], 90.0);
    let hashes =
        |lines: &[Value]| -> Vec<Value> { lines.iter().map(|line| line["request_sha256"].clone()).collect() };
    assert_eq!(
        hashes(&first),
        hashes(&second),
        "the model would be asked the same"
    );
    let step = &first[2];
    assert_eq!(
        step["calls"][0]["plan"]["subsystems"],
        json!(["base"]),
        "{step:#}"
    );
    assert_eq!(step["calls"][0]["status"], "completed");
    assert_eq!(step["left"]["steps"], 28);
    assert_eq!(first.last().unwrap()["end"]["reason"], "done");
}

#[test]
fn a_replay_that_differs_says_so_and_has_no_tool_that_it_was_not_given() {
    let stage = Stage::new(&json!({}));
    let model = Model::new(vec![call("add", json!({"a": 1, "b": 2})), finish()]);
    let first = stage.scene.sandbox.path("first.jsonl");
    let ended = stage.run(&model, &["--record", first.to_str().unwrap()]);
    assert_eq!(ended.reason(), "done", "{}", ended.output);
    let mut again = command(&stage.scene);
    again.args(["--replay", first.to_str().unwrap(), "--without", "add", "--json"]);
    let replayed = end(Process::start("replay", &stage.scene.sandbox, again));
    assert_eq!(
        (replayed.reason(), replayed.status.code()),
        ("done", Some(6)),
        "{}",
        replayed.output
    );
    assert!(
        replayed.output.contains("replay: step 1 differs"),
        "{}",
        replayed.output
    );
}

#[test]
fn switches_of_a_run_take_tools_perception_and_the_form_of_calls_away() {
    let stage = Stage::new(&json!({}));
    let tool_names = |model: &Model| -> Vec<String> {
        let tools = model.requests()[0]["tools"].clone();
        let tools = tools.as_array().cloned().unwrap_or_default();
        tools
            .iter()
            .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let model = Model::new(vec![finish()]);
    stage.run(
        &model,
        &[
            "--tools",
            "add,assemble,echo",
            "--without",
            "ech*",
            "--plan-preview",
        ],
    );
    assert_eq!(
        tool_names(&model),
        [
            "finish",
            "emergency_stop",
            "stop_moving",
            "preview_plan",
            "add",
            "assemble"
        ]
    );

    let model = Model::new(vec![call("echo", json!({"text": "secret"})), finish()]);
    stage.run(&model, &["--blank", "text"]);
    assert_eq!(model.messages("tool")[0]["content"], "{\"text\":null}");

    let say = |text: &str| Reply::Says(json!({"role": "assistant", "content": text}));
    let model = Model::new(vec![
        say("Thought: a sum\nAction: add\nAction Input: {\"a\": 1, \"b\": 2}"),
        say("Thought: done\nAction: finish\nAction Input: {\"reached\": true, \"summary\": \"3\"}"),
    ]);
    let ended = stage.run(&model, &["--text-calls"]);
    assert_eq!(ended.reason(), "done", "{}", ended.output);
    assert!(model.requests()[0]["tools"].is_null());
    let messages = model.messages("user");
    // The state follows in the same message: many models' templates refuse two messages of the user in a row.
    let observed = |message: &Value| {
        let content = message["content"].as_str().unwrap_or_default();
        content.starts_with("Observation: {\"result\":3}\n\nState: ")
    };
    assert!(messages.iter().any(observed), "{messages:?}");
}

#[test]
fn a_model_that_cannot_hold_the_list_searches_it() {
    let stage = Stage::new(&json!({"tools_budget_bytes": 100}));
    let model = Model::new(vec![
        call(
            "find_tools",
            json!({"query": "sum up some whole numbers, please: adding"}),
        ),
        call("call_tool", json!({"name": "add", "arguments": {"a": 1, "b": 2}})),
        call("find_tools", json!({"query": "xyzzy"})),
        call("find_tools", json!({"guide": "testbed"})),
        call("call_tool", json!({"name": "adding", "arguments": {}})),
        call("find_tools", json!({})),
        call(
            "call_tool",
            json!({"name": "finish", "arguments": {"reached": true}}),
        ),
        finish(),
    ]);
    let ended = stage.run(&model, &[]);
    assert_eq!(ended.reason(), "done", "{}", ended.output);
    assert_eq!(model.requests()[0]["tools"].as_array().unwrap().len(), 5);
    let messages = model.messages("tool");
    let messages: Vec<&str> = messages
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    let found: Value = serde_json::from_str(messages[0]).unwrap();
    assert_eq!(found["tools"][0]["name"], "add", "{found:#}");
    assert_eq!(found["tools"][0]["toolbox"], "testbed", "{found:#}");
    assert_eq!(messages[1], "{\"result\":3}");
    let nothing: Value = serde_json::from_str(messages[2]).unwrap();
    let toolboxes = nothing["toolboxes"].as_array().unwrap();
    assert!(
        toolboxes
            .iter()
            .any(|one| one["guide"] == "skill://testbed/SKILL.md"),
        "{nothing:#}"
    );
    assert!(messages[3].contains("## Tools: "), "{}", messages[3]);
    assert!(
        messages[4].contains("there is no tool 'adding'; similar ones: add"),
        "{}",
        messages[4]
    );
    assert!(messages[5].contains("expected `query`"), "{}", messages[5]);
}
