//! A door that shows `find_tools`: a call through `call_tool` is the call itself, with its place in the order, its stops and its
//! confirmation.

use serde_json::{Value, json};

use crate::mcp::door::Stage;
use crate::support::mcp::StdioClient;

#[track_caller]
fn through(client: &mut StdioClient, name: &str, arguments: &Value) -> Value {
    client.ask(
        "tools/call",
        json!({"name": "call_tool", "arguments": {"name": name, "arguments": arguments}}),
    )
}

#[test]
fn a_stop_of_a_toolbox_is_carried_out_whatever_its_arguments_are() {
    let stage = Stage::new(&json!({ "find_tools": true }));
    let mut client = stage.stdio_client();
    for arguments in [json!([]), json!(5), json!("now"), json!({"toolbox_id": []})] {
        let answer = through(&mut client, "stop", &arguments);
        assert!(answer["result"].is_object(), "{arguments}: {answer}");
        let refused = through(&mut client, "assemble", &json!({}));
        let text = refused["result"]["content"][0]["text"].to_string();
        assert!(text.contains("emergency stop"), "{arguments}: {refused}");
    }
    let answer = through(&mut client, "emergency_stop", &json!([]));
    let text = answer["result"]["content"][0]["text"].to_string();
    assert!(text.contains("Everything is stopped"), "{answer}");
}

#[test]
fn it_is_off_by_default_and_the_toolset_holds_for_what_is_found() {
    let stage = Stage::new(&json!({}));
    let mut client = stage.stdio_client();
    for name in ["find_tools", "call_tool"] {
        let answer = client.ask("tools/call", json!({"name": name, "arguments": {"query": "add"}}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    drop(client);
    let stage = Stage::new(&json!({ "find_tools": true, "tools": { "deny": ["add"] } }));
    let mut client = stage.stdio_client();
    let found = client.ask(
        "tools/call",
        json!({"name": "find_tools", "arguments": {"query": "add two integers", "limit": 20}}),
    );
    let tools = found["result"]["structuredContent"]["tools"].to_string();
    assert!(!tools.contains("\"name\":\"add\""), "{tools}");
    let answer = through(&mut client, "add", &json!({"a": 1, "b": 2}));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
}

#[test]
fn what_has_to_be_confirmed_waits_as_a_direct_call_does() {
    let stage = Stage::on_hardware_with(&json!({ "find_tools": true }));
    let mut client = stage.stdio_client();
    let arguments = json!({"subsystems": ["left_arm"], "step_ms": 1, "steps": 1});
    let direct = client.ask("tools/call", json!({"name": "assemble", "arguments": arguments}));
    let wrapped = through(&mut client, "assemble", &arguments);
    for answer in [&direct, &wrapped] {
        let text = answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default();
        assert!(text.contains("NOT") || text.contains("approv"), "{answer}");
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
}
