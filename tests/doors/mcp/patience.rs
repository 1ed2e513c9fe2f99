//! Calls that take longer than their clients wait: they are answered with a handle and go on, as long as their clients ask for them.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp::door::{Listening, Stage, binary};
use crate::mcp::order::moves;
use crate::mcp::sessions::{Http, read};
use crate::support::mcp::StdioClient;
use crate::support::process::Process;
use crate::support::python::{frameworks_python, mcp_python, node};

fn stage() -> Stage {
    Stage::new(&json!({ "reply_within_ms": 2000, "lease_ms": 4000 }))
}

/// Clients of an SDK that give up after 3, 5 and 10 s.
fn gives_up(peer: &str, era: &str, transport: &str) {
    if let Some(python) = mcp_python() {
        gives_up_on(&stage(), python, peer, era, transport);
    }
}

/// Frameworks for agents that give up after as long, and what their models read.
fn framework_gives_up(peer: &str, transport: &str) {
    if let Some(python) = frameworks_python() {
        gives_up_on(&stage(), python, peer, "framework", transport);
    }
}

fn gives_up_on(stage: &Stage, python: &Path, peer: &str, era: &str, transport: &str) {
    let listening = (transport == "http").then(|| Listening::start(stage));
    let (url, token) = reached(listening.as_ref());
    let (door, motor_log, bus) = (binary(), stage.motor_log(), stage.scene.url());
    let arguments = [
        peer,
        era,
        transport,
        door.to_str().unwrap(),
        &bus,
        &motor_log,
        url,
        token,
    ];
    let output = stage.script_of(python, "mcp_patience.py", &arguments).finish();
    println!("{output}");
    assert!(output.contains("nothing stopped half way"), "{output}");
}

fn reached(listening: Option<&Listening>) -> (&str, &str) {
    listening.map_or(("", ""), |door| (door.url.as_str(), door.token.as_str()))
}

#[test]
fn mcp_in_the_legacy_era_over_stdio() {
    gives_up("mcp", "legacy", "stdio");
}

#[test]
fn mcp_in_the_legacy_era_over_http() {
    gives_up("mcp", "legacy", "http");
}

#[test]
fn mcp_in_the_modern_era_over_http() {
    gives_up("mcp", "modern", "http");
}

#[test]
fn fastmcp_in_the_modern_era_over_stdio() {
    gives_up("fastmcp", "modern", "stdio");
}

/// Clients check a handle with the schema that they were shown.
#[test]
fn clients_that_are_shown_output_schemas() {
    let Some(python) = mcp_python() else { return };
    for peer in ["mcp", "fastmcp"] {
        let stage = Stage::new(&json!({ "reply_within_ms": 2000, "lease_ms": 4000, "output_schemas": true }));
        gives_up_on(&stage, python, peer, "legacy", "stdio");
    }
}

#[test]
fn langchain_over_stdio() {
    framework_gives_up("langchain", "stdio");
}

#[test]
fn openai_agents_over_http() {
    framework_gives_up("openai-agents", "http");
}

#[test]
fn pydantic_ai_over_http() {
    framework_gives_up("pydantic-ai", "http");
}

#[test]
fn mcp_use_over_stdio() {
    framework_gives_up("mcp-use", "stdio");
}

fn typescript(major: &str, transport: &str) {
    let stage = stage();
    let Some(mut script) = node("mcp_patience.mjs", &stage.scene.sandbox) else {
        return;
    };
    let listening = (transport == "http").then(|| Listening::start(&stage));
    let (url, token) = reached(listening.as_ref());
    let (door, bus) = (binary(), stage.scene.url());
    script.args([major, transport, door.to_str().unwrap(), &bus, url, token]);
    let output = Process::start("patience", &stage.scene.sandbox, script).finish();
    assert!(output.contains("nothing stopped half way"), "{output}");
}

#[test]
fn typescript_over_stdio() {
    typescript("1", "stdio");
}

#[test]
fn typescript_over_http() {
    typescript("1", "http");
}

#[test]
fn the_second_typescript_sdk_over_http() {
    typescript("2", "http");
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

fn answer_to(client: &Http, request: &Value) -> Value {
    let answer = Http::answer_in(7, &read(client.send("POST", &client.message(7, request))));
    answer["result"].clone()
}

/// Of those that move something `mcp_patience.py` tells: before it is answered with a handle, a client of the legacy era has to answer
/// a ping.
#[test]
fn a_call_of_any_effect_gets_a_handle_and_each_client_has_its_own() {
    let stage = Stage::new(
        &json!({ "reply_within_ms": 300, "lease_ms": 60_000, "http_token": false, "run_steps": true }),
    );
    let door = Listening::start(&stage);
    let (one, other) = (Http::new(&door, false), Http::new(&door, false));
    let slow = json!({ "seconds": 1.5 });
    for request in [
        call("slow", &slow),
        call(
            "run_steps",
            &json!({"steps": [{"id": "a", "name": "slow", "args": slow}]}),
        ),
    ] {
        let answer = answer_to(&one, &request);
        let call_id = answer["structuredContent"]["call_id"].clone();
        assert!(call_id.is_string() && answer["isError"] == false, "{answer}");
        let foreign = answer_to(&other, &call("cancel_call", &json!({ "call_id": call_id })));
        assert_eq!(foreign["isError"], true, "a call of another client: {foreign}");
        let calls = answer_to(&other, &call("list_calls", &json!({})));
        assert_eq!(calls["structuredContent"]["calls"], json!([]));
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let waited = answer_to(
                &one,
                &call("wait_call", &json!({ "call_id": call_id, "seconds": 0.3 })),
            );
            if waited["structuredContent"]["state"] != "running" {
                assert_eq!(waited["isError"], false, "{waited}");
                break;
            }
            assert!(Instant::now() < end, "{waited}");
        }
    }
}

#[test]
fn stop_moving_and_the_end_of_a_session_end_what_was_left() {
    let mut stage = Stage::new(&json!({ "reply_within_ms": 200, "lease_ms": 60_000, "http_token": false }));
    let door = Listening::start(&stage);
    let slow = call("slow", &json!({ "seconds": 60 }));
    for (is_modern, request) in [(false, &slow), (true, &moves("base", 100_000))] {
        let client = Http::new(&door, is_modern);
        let left = answer_to(&client, request);
        assert_eq!(left["structuredContent"]["state"], "running", "{left}");
        let stopped = answer_to(&client, &call("stop_moving", &json!({})));
        assert_eq!(stopped["structuredContent"]["stopped"], 1, "{stopped}");
        stage.client.until_phases(&[]);
    }
    let client = Http::new(&door, false);
    answer_to(&client, &slow);
    read(client.send("DELETE", ""));
    stage.client.until_phases(&[]);
    // A client at stdin and stdout that ends.
    let mut at_stdio = stage.stdio_client();
    let params = moves("base", 100_000)["params"].clone();
    let left = at_stdio.ask("tools/call", params);
    assert_eq!(left["result"]["structuredContent"]["state"], "running", "{left}");
    drop(at_stdio);
    stage.client.until_phases(&[]);
}

#[test]
fn more_calls_than_a_client_may_leave_are_refused() {
    let mut stage = Stage::new(&json!({ "reply_within_ms": 100, "lease_ms": 60_000, "http_token": false }));
    let door = Listening::start(&stage);
    let client = Http::new(&door, false);
    let slow = call("slow", &json!({ "seconds": 60 }));
    for number in 0..16 {
        let left = answer_to(&client, &slow);
        assert_eq!(left["isError"], false, "{number}: {left}");
    }
    let refused = answer_to(&client, &slow);
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("BusyError: 16 calls") && text.contains("cancel_call"),
        "{text}"
    );
    // Another client is not refused, and neither is a stop.
    assert_eq!(answer_to(&Http::new(&door, false), &slow)["isError"], false);
    answer_to(&client, &call("stop_moving", &json!({})));
    stage.client.until_phases(&[]);
    assert_eq!(answer_to(&client, &slow)["isError"], false);
    answer_to(&client, &call("stop_moving", &json!({})));
}

/// A client of the newest revision that declares the extension for tasks.
#[test]
fn a_client_with_tasks_gets_one() {
    let mut stage = Stage::new(&json!({ "reply_within_ms": 200, "lease_ms": 3000 }));
    let mut client = stage.stdio_client();
    client.capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    // One that ends in time is no task.
    let quick = client.ask(
        "tools/call",
        call("add", &json!({"a": 1, "b": 2}))["params"].clone(),
    );
    assert_eq!(quick["result"]["structuredContent"]["result"], 3, "{quick}");
    let begin = |client: &mut StdioClient, steps: u64| {
        let task = client.ask("tools/call", moves("base", steps)["params"].clone())["result"].clone();
        assert_eq!(
            (&task["resultType"], &task["status"]),
            (&json!("task"), &json!("working")),
            "{task}"
        );
        json!({ "taskId": task["taskId"] })
    };
    let task = begin(&mut client, 700);
    let ended = loop {
        let got = client.ask("tasks/get", task.clone())["result"].clone();
        assert_eq!(got["resultType"], "complete", "{got}");
        if got["status"] != "working" {
            break got;
        }
        std::thread::park_timeout(Duration::from_millis(100));
    };
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(ended["result"]["structuredContent"]["success"], true, "{ended}");
    // `tasks/cancel` stops it.
    let task = begin(&mut client, 100_000);
    assert_eq!(
        client.ask("tasks/cancel", task.clone())["result"]["resultType"],
        "complete"
    );
    stage.client.until_phases(&[]);
    assert_eq!(client.ask("tasks/get", task)["result"]["status"], "cancelled");
    // And so does the lease of one that is not asked for, by a client that is there: it reads.
    let start = Instant::now();
    begin(&mut client, 100_000);
    while !stage.client.calls().is_empty() {
        client.ask("tools/list", json!({}));
        std::thread::park_timeout(Duration::from_millis(50));
    }
    let took = start.elapsed();
    assert!(
        took > Duration::from_millis(2900) && took < Duration::from_secs(6),
        "{took:?}"
    );
    let unknown = client.ask("tasks/get", json!({"taskId": "none"}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    // Without the extension there are none.
    client.capabilities = json!({});
    assert!(client.ask("tasks/get", json!({"taskId": "none"}))["error"].is_object());
}
