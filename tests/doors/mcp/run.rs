//! `run_steps`: several tools as one call, of the toolset alone, each judged by the policy as by itself.

use serde_json::{Value, json};

use crate::mcp::door::Stage;
use crate::support::mcp::StdioClient;

/// Calls `run_steps`; whether it failed, its text and its structured content.
#[track_caller]
fn call_run_steps(client: &mut StdioClient, steps: Value) -> (bool, String, Value) {
    let called = client.ask(
        "tools/call",
        json!({"name": "run_steps", "arguments": {"steps": steps}}),
    );
    let result = &called["result"];
    let blocks = result["content"].as_array().unwrap_or_else(|| panic!("{called}"));
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    (
        result["isError"] == true,
        texts.join("\n"),
        result["structuredContent"].clone(),
    )
}

#[test]
fn it_is_off_by_default() {
    let stage = Stage::new(&json!({}));
    let mut client = stage.stdio_client();
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].take();
    assert!(
        tools
            .as_array()
            .unwrap()
            .iter()
            .all(|tool| tool["name"] != "run_steps")
    );
    let called = client.ask(
        "tools/call",
        json!({"name": "run_steps", "arguments": {"steps": []}}),
    );
    assert_eq!(called["error"]["code"], -32602, "{called}");
}

#[test]
fn it_calls_tools_of_the_list_and_shows_what_became_of_each() {
    let stage = Stage::new(&json!({ "run_steps": true, "tools": { "deny": ["set_mark"] } }));
    let mut client = stage.stdio_client();
    let (failed, text, run) = call_run_steps(
        &mut client,
        json!([
            {"id": "sum", "name": "add", "args": {"a": 1, "b": 2}},
            {"id": "whose", "name": "testbed_dup__dup", "after": ["sum"]},
            {"id": "twice", "name": "add", "args": {"a": {"$from": "sum.result"}, "b": {"$from": "sum.result"}}},
        ]),
    );
    assert!(!failed, "{text}");
    assert_eq!(run["steps"][2]["result"]["result"], 6, "{run}");
    assert_eq!(
        run["steps"][1]["name"], "testbed_dup__dup",
        "the name of the list: {run}"
    );
    for (name, expected) in [
        ("set_mark", "step 'a': 'set_mark' is not a tool of this list"),
        ("testbed__set_mark", "is not a tool of this list"),
        ("run_steps", "is not a tool of this list that can be a step"),
        ("reset_stop", "is not a tool of this list"),
    ] {
        let (failed, text, _) = call_run_steps(&mut client, json!([{"id": "a", "name": name}]));
        assert!(failed && text.contains(expected), "{name}: {text}");
    }
    let (failed, text, _) = call_run_steps(&mut client, json!([{"id": "a", "name": "ping", "after": ["a"]}]));
    assert!(failed && text.contains("in a circle: a -> a"), "{text}");
    let (failed, text, _) = call_run_steps(&mut client, json!([{"id": "a"}]));
    assert!(failed && text.contains("missing field `name`"), "{text}");
    // A stop is never a step that waits, and is not refused.
    let (_, _, run) = call_run_steps(
        &mut client,
        json!([{"id": "a", "name": "stop", "after": ["nowhere"]}, 7]),
    );
    assert_eq!(run["steps"][0]["status"], "completed", "{run}");
    let (failed, text, run) = call_run_steps(
        &mut client,
        json!([{"id": "a", "name": "stop_moving"}, {"id": "b", "name": "stop"}]),
    );
    assert!(!failed && text.contains("Nothing was running here"), "{text}");
    assert_eq!(
        (&run["steps"][0]["id"], &run["steps"][0]["status"]),
        (&json!("b"), &json!("completed")),
        "{run}"
    );
    // Of what is beside a stop nothing is done, and that is said.
    for beside in [
        json!({"id": "b", "name": "wav"}),
        json!({"id": "b", "name": "ping"}),
    ] {
        let (failed, text, run) =
            call_run_steps(&mut client, json!([{"id": "a", "name": "stop"}, beside.clone()]));
        assert!(failed && text.contains("only the stop was carried out"), "{text}");
        let found = run["steps"].as_array().unwrap().iter();
        let found: Vec<_> = found
            .map(|step| (&step["id"], &step["name"], &step["status"]))
            .collect();
        assert_eq!(
            found,
            [
                (&json!("a"), &json!("stop"), &json!("completed")),
                (&json!("b"), &beside["name"], &json!("not_started"))
            ]
        );
        let (failed, text, _) =
            call_run_steps(&mut client, json!([{"id": "a", "name": "stop_moving"}, beside]));
        let has_all = ["Nothing was running here", "no other step of the run"]
            .iter()
            .all(|part| text.contains(part));
        assert!(failed && has_all, "{text}");
    }
    let (failed, text, _) = call_run_steps(&mut client, json!([{"id": "a", "name": "assemble"}]));
    assert!(failed && text.contains("EmergencyStop: step 'a': "), "{text}");
    let (failed, text, _) = call_run_steps(
        &mut client,
        json!([{"id": "a", "name": "emergency_stop", "after": ["nowhere"]}]),
    );
    assert!(!failed && text.contains("Everything is stopped"), "{text}");
}

#[test]
fn a_step_that_has_to_be_confirmed_is_told_about_and_its_token_is_not() {
    let stage = Stage::on_hardware_with(&json!({ "run_steps": true }));
    let mut client = stage.stdio_client();
    let (failed, text, run) = call_run_steps(
        &mut client,
        json!([
            {"id": "which", "name": "echo", "args": {"text": "left_arm"}},
            {"id": "move", "name": "assemble", "args": {"subsystems": [{"$from": "which.text"}], "step_ms": 1, "steps": 1}},
            {"id": "later", "name": "ping", "after": ["move"]},
        ]),
    );
    assert!(failed, "{text}");
    let waits = &run["steps"][1];
    assert_eq!(waits["status"], "confirmation_required", "{run}");
    assert_eq!(run["steps"][2]["status"], "not_started");
    assert!(
        waits["confirm"].get("token").is_none() && !text.contains("token"),
        "{text}"
    );
    let id = waits["confirm"]["id"].as_str().unwrap();
    for part in [
        "Call `assemble` by itself, with the arguments {\"subsystems\":[\"left_arm\"]",
        &format!("`ovos-tools approve {id}`"),
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(stage.scene.motors().is_empty());
}
