//! Servers with a URL: a token, one that vanishes and returns, and one of the old era.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::mounts::scene::{Scene, script};
use crate::support::process::{Process, Sandbox, free_port};
use crate::support::python::{mcp_python, node};
use crate::support::status;

/// A server made with `fastmcp`.
fn fast(python: &Path, sandbox: &Sandbox, name: &str, port: u16) -> Process {
    let mut command: Command = sandbox.command(python);
    command
        .arg(script("fast.py"))
        .arg(port.to_string())
        .arg("t-secret");
    Process::start(name, sandbox, command)
}

#[test]
fn a_server_with_a_url_may_vanish_and_return() {
    let Some(python) = mcp_python() else { return };
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/mcp?key=q-secret");
    let servers = Sandbox::new();
    let server = fast(python, &servers, "first", port);
    let mut scene = Scene::with(&[("FAST_TOKEN", "t-secret")], |_| {
        let mounts = json!({
            "fast": { "type": "streamable-http", "url": url, "bearer_env": "FAST_TOKEN" },
            "limited": { "url": url, "headers": { "Authorization": "Bearer little" } },
            "stranger": { "url": url, "headers": { "Authorization": "Bearer w-secret" } },
            "unset": { "url": url, "bearer_env": "NOT_SET" },
            "misplaced": { "url": url, "bearer_env": "ghp_misplaced" },
        });
        (mounts, json!({}))
    });
    scene.until("fast", "ready");
    scene.until_tools("fast", 5);
    let answer = scene.call("fast", "add", &json!({ "a": 2, "b": 3 }));
    assert_eq!(answer["result"], json!({ "result": 5 }), "{answer}");
    // What its owner can do is another token: signing in is refused for a mount that has one.
    scene.until_tools("limited", 5);
    let answer = scene.call("limited", "add", &json!({ "a": 2, "b": 3 }))["error"].to_string();
    assert!(
        answer.contains("PermissionError") && answer.contains("bearer_env") && !answer.contains("sign-in"),
        "{answer}"
    );
    // Until the server listens, the reason is another one.
    status::toolbox_until(&mut scene.client, "stranger", "a 401", |toolbox| {
        toolbox["backend"]["reason"].to_string().contains("401")
    });
    let unset = scene.until("unset", "down")["backend"]["reason"].to_string();
    assert!(unset.contains("`NOT_SET`"), "{unset}");
    let misplaced = scene.until("misplaced", "down")["backend"]["reason"].to_string();
    assert!(
        misplaced.contains("`(not shown)`"),
        "a token in its place: {misplaced}"
    );

    drop(server);
    let answer = scene.call("fast", "add", &json!({ "a": 2, "b": 3 }))["error"].to_string();
    assert!(answer.contains("Connection refused"), "{answer}");
    assert!(
        answer.contains("ConnectionError: the MCP server of mount `fast` is unavailable"),
        "{answer}"
    );
    scene.until("fast", "down");
    let _server = fast(python, &servers, "second", port);
    scene.until("fast", "ready");
    let answer = scene.call("fast", "add", &json!({ "a": 1, "b": 1 }));
    assert_eq!(answer["result"], json!({ "result": 2 }), "{answer}");

    let status = scene.client.ask("ovos.tools.status", &json!({})).to_string();
    let text = format!("{status}{}", scene.service.output());
    assert!(!text.contains("-secret"), "{text}");
}

#[test]
fn a_call_over_http_is_cancelled_at_the_server() {
    let Some(python) = mcp_python() else { return };
    let port = free_port();
    let servers = Sandbox::new();
    let mut server = fast(python, &servers, "fast", port);
    let url = format!("http://127.0.0.1:{port}/mcp");
    let headers = json!({ "Authorization": "Bearer t-secret" });
    let mut scene = Scene::start(&json!({ "fast": { "url": url, "headers": headers } }), &json!({}));
    scene.until_tools("fast", 5);
    let short: Value = json!({ "timeout_ms": 500 });
    let answer = scene.ask("fast", "slow", &json!({ "steps": 600 }), &short)["error"].to_string();
    assert!(answer.contains("TimeoutError"), "{answer}");
    server.until("the cancel", |server| {
        server.output().contains("slow was cancelled").then_some(())
    });
}

#[test]
fn an_old_server_is_mounted_over_http_too() {
    let servers = Sandbox::new();
    let Some(mut command) = node("@modelcontextprotocol/server-everything/dist/index.js", &servers) else {
        return;
    };
    let port = free_port();
    command.arg("streamableHttp").env("PORT", port.to_string());
    let _server = Process::start("everything", &servers, command);
    let url = format!("http://127.0.0.1:{port}/mcp");
    let mut scene = Scene::start(&json!({ "Every.Thing": { "url": url } }), &json!({}));
    let toolbox = scene.until("every_thing", "ready");
    let reason = toolbox["backend"]["reason"].as_str().unwrap();
    assert!(reason.contains("MCP 2025-11-25"), "{reason}");
    let answer = scene.call("every_thing", "echo", &json!({ "message": "hi" }));
    assert_eq!(answer["result"], json!({ "content": "Echo: hi" }), "{answer}");
}

#[test]
fn a_server_over_http_that_was_restarted_between_two_calls_serves_the_next() {
    let servers = Sandbox::new();
    let port = free_port();
    let start = |name: &str| {
        let mut command = node("@modelcontextprotocol/server-everything/dist/index.js", &servers)?;
        command.arg("streamableHttp").env("PORT", port.to_string());
        let mut server = Process::start(name, &servers, command);
        server.until("listening", |server| {
            server.output().contains("listening").then_some(())
        });
        Some(server)
    };
    let Some(first) = start("first") else { return };
    let url = format!("http://127.0.0.1:{port}/mcp");
    let mut scene = Scene::start(&json!({ "every": { "url": url } }), &json!({}));
    scene.until("every", "ready");
    let answer = scene.call("every", "echo", &json!({ "message": "one" }));
    assert_eq!(answer["result"], json!({ "content": "Echo: one" }), "{answer}");
    drop(first);
    // It knows nothing of the session of the first.
    let _second = start("second");
    let answer = scene.call("every", "echo", &json!({ "message": "two" }));
    assert_eq!(answer["result"], json!({ "content": "Echo: two" }), "{answer}");
}

#[test]
fn a_call_may_take_longer_than_the_service_waits_for_an_idle_server() {
    let port = free_port();
    let servers = Sandbox::new();
    let mut command = servers.command(Path::new("/usr/bin/python3"));
    command.arg(script("busy.py")).arg(port.to_string());
    let _server = Process::start("busy", &servers, command);
    let url = format!("http://127.0.0.1:{port}/mcp");
    let mut scene = Scene::start(&json!({ "busy": { "url": url, "timeout": 90 } }), &json!({}));
    scene.until_tools("busy", 1);
    // An idle server is asked after 30 s, and has 10 s to answer.
    let call = json!({ "name": "long", "args": { "seconds": 43 }, "toolbox_id": "busy", "call_id": "l" });
    scene.client.send("ovos.tools.invoke", &call);
    scene.client.until_answered([&"l".to_owned()]);
    let answer = scene.client.only_answer("l");
    assert_eq!(answer["result"]["content"], "done", "{answer}");
}

#[test]
fn certificates_are_needed_for_https_alone() {
    let port = free_port();
    let servers = Sandbox::new();
    let mut command = servers.command(Path::new("/usr/bin/python3"));
    command.arg(script("busy.py")).arg(port.to_string());
    let _server = Process::start("busy", &servers, command);
    let empty = servers.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let none = empty.to_str().unwrap();
    let file = format!("{none}/none.pem");
    let mut scene = Scene::with(&[("SSL_CERT_DIR", none), ("SSL_CERT_FILE", &file)], |_| {
        let mounts = json!({
            "plain": { "url": format!("http://127.0.0.1:{port}/mcp") },
            "secure": { "url": format!("https://127.0.0.1:{port}/mcp") },
        });
        (mounts, json!({}))
    });
    scene.until_tools("plain", 1);
    let answer = scene.call("plain", "long", &json!({ "seconds": 0 }));
    assert_eq!(answer["result"]["content"], "done", "{answer}");
    let reason = scene.until("secure", "down")["backend"]["reason"].to_string();
    assert!(
        reason
            .contains("No CA certificates were loaded from the system; install the package ca-certificates"),
        "{reason}"
    );
}

#[test]
fn a_server_of_the_new_era_tells_of_its_tools_to_those_who_listen() {
    let Some(python) = mcp_python() else { return };
    let port = free_port();
    let servers = Sandbox::new();
    let mut command = servers.command(python);
    command.arg(script("listens.py")).arg(port.to_string());
    let _server = Process::start("listens", &servers, command);
    let mounts = json!({
        "lines": { "command": python, "args": [script("listens.py")] },
        "web": { "url": format!("http://127.0.0.1:{port}/mcp") },
    });
    let mut scene = Scene::start(&mounts, &json!({}));
    for mount in ["lines", "web"] {
        let toolbox = scene.until(mount, "ready");
        let reason = toolbox["backend"]["reason"].as_str().unwrap();
        assert!(reason.contains("MCP 2026-07-28"), "{mount}: {reason}");
        for (tool, tools) in [("grow", 3), ("shrink", 2), ("grow", 3)] {
            scene.call(mount, tool, &json!({}));
            scene.until_tools(mount, tools);
        }
        let answer = scene.call(mount, "grown", &json!({}));
        assert_eq!(answer["result"]["content"], "grown", "{answer}");
    }
}
