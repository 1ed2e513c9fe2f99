//! Servers that others have published, mounted as processes and called through the bus.

use serde_json::{Value, json};

use crate::mounts::scene::{Scene, script};
use crate::support::process::{Process, Sandbox, free_port};
use crate::support::python::{mcp_python, node};

#[test]
fn server_everything_is_mounted() {
    let sandbox = Sandbox::new();
    let Some(command) = node("@modelcontextprotocol/server-everything/dist/index.js", &sandbox) else {
        return;
    };
    let mut args: Vec<String> = command
        .get_args()
        .map(|arg| arg.to_str().unwrap().to_owned())
        .collect();
    args.push("stdio".to_owned());
    let program = command.get_program().to_str().unwrap();
    let mut scene = Scene::start(
        &json!({ "mcpServers": { "everything": { "command": program, "args": args } } }),
        &json!({}),
    );
    scene.until("everything", "ready");
    let answer = scene.call("everything", "echo", &json!({ "message": "hi" }));
    assert_eq!(answer["result"], json!({ "content": "Echo: hi" }), "{answer}");
    let answer = scene.call("everything", "get-sum", &json!({ "a": 2, "b": 3 }));
    assert_eq!(
        answer["result"]["content"], "The sum of 2 and 3 is 5.",
        "{answer}"
    );
    let answer = scene.call(
        "everything",
        "get-structured-content",
        &json!({ "location": "New York" }),
    );
    assert!(answer["result"]["temperature"].is_number(), "{answer}");
    let picture = scene.ask(
        "everything",
        "get-tiny-image",
        &json!({}),
        &json!({ "content": "inline" }),
    );
    assert_eq!(picture["content"][0]["mime_type"], "image/png", "{picture}");
}

#[test]
fn a_server_of_fastmcp_is_mounted_in_the_new_era() {
    let Some(python) = mcp_python() else { return };
    let mount = json!({ "command": python, "args": [script("fast.py")], "trust_hints": true });
    let mut scene = Scene::start(&json!({ "fast": mount }), &json!({}));
    let toolbox = scene.until("fast", "ready");
    assert_eq!(toolbox["backend"]["reason"], "5 tools, MCP 2026-07-28");
    scene.until_tools("fast", 5);
    let answer = scene.call("fast", "profile", &json!({ "name": "ann" }));
    assert_eq!(
        answer["result"],
        json!({ "name": "ann", "initial": "a" }),
        "{answer}"
    );
    let answer = scene.call("fast", "fail", &json!({}))["error"].to_string();
    assert!(answer.contains("there is no such city"), "{answer}");
    let call = json!({
        "name": "slow", "args": { "steps": 4 }, "toolbox_id": "fast", "call_id": "s", "progress": true
    });
    scene.client.send("ovos.tools.invoke", &call);
    let half = scene.client.until("progress", |frame| {
        let update = &frame["data"];
        (update["kind"] == "update" && update["fraction"] == 0.5).then(|| update["message"].clone())
    });
    assert_eq!(half, "step 2");
    scene.client.until_answered([&"s".to_owned()]);
}

#[test]
fn the_persona_servers_tools_are_mounted_through_both_of_its_doors() {
    let Some(python) = mcp_python() else { return };
    let (port, servers) = (free_port(), Sandbox::new());
    let persona = servers.path("persona.json");
    let written = json!({ "name": "test", "handlers": ["ovos-solver-failure-plugin"] });
    std::fs::write(&persona, written.to_string()).unwrap();
    let mut command = servers.command(python.with_file_name("ovos-persona-server"));
    command
        .args([
            "--mcp",
            "--host",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--persona",
        ])
        .arg(persona);
    let _server = Process::start("persona", &servers, command);
    // It serves the OPM toolboxes that are installed beside it.
    let mount = |door: Value| {
        let mut mount = json!({
            "tools": { "allow": ["evaluate_expression", "get_current_datetime"] },
            "effects": { "evaluate_expression": "read" },
        });
        mount
            .as_object_mut()
            .unwrap()
            .extend(door.as_object().unwrap().clone());
        mount
    };
    let mounts = json!({
        "lines": mount(json!({ "command": python.with_file_name("ovos-persona-tools-mcp") })),
        "web": mount(json!({ "url": format!("http://127.0.0.1:{port}/mcp") })),
    });
    let mut scene = Scene::start(&mounts, &json!({}));
    for door in ["lines", "web"] {
        scene.until_tools(door, 2);
        let answer = scene.call(door, "evaluate_expression", &json!({ "expression": "6*7" }));
        let output = answer["result"]["content"].as_str().unwrap();
        let output: Value = serde_json::from_str(output).unwrap();
        assert_eq!(output["result"], 42.0, "{door}: {answer}");
    }
}
