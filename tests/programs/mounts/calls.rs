//! What callers get from a mounted server, and what the server gets.

use std::fs;

use serde_json::{Value, json};

use crate::mounts::scene::{Scene, fake, script};

fn scene(more: Value) -> Scene {
    let mut scene = Scene::of(|sandbox| {
        let mut mount = fake(sandbox, "fake", &[]);
        mount
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({ "fake": mount })
    });
    scene.until("fake", "ready");
    scene
}

#[test]
fn a_mounted_server_is_a_toolbox() {
    let mut scene = scene(json!({
        "effects": { "add": "read" }, "tools": { "deny": ["new", "environment"] }, "timeout": 7
    }));
    let toolbox = scene.until_tools("fake", 9);
    assert_eq!(toolbox["simulated"], false, "{toolbox}");
    assert_eq!(toolbox["backend"]["reason"], "9 tools, MCP 2025-11-25");

    let list = scene.client.ask("ovos.tools.list", &json!({ "detail": true }));
    let of = |name: &str| {
        let tools = list["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).cloned().unwrap()
    };
    assert_eq!(of("add")["meta"]["effect"], "read");
    assert_eq!(of("echo")["meta"]["effect"], "write", "its hint is not trusted");
    assert_eq!(of("echo")["meta"]["timeout_ms"], 7000);

    let big: Value = serde_json::from_str("123456789012345678901234567890").unwrap();
    let answer = scene.call("fake", "add", &json!({ "a": big, "b": 0 }));
    assert_eq!(answer["result"]["sum"], big, "{answer}");
    let answer = scene.call("fake", "echo", &json!({ "text": "hello" }));
    assert_eq!(answer["result"], json!({ "content": "hello" }));
    let answer = scene.ask("fake", "picture", &json!({}), &json!({ "content": "inline" }));
    assert_eq!(answer["result"], json!({ "content": "[image image/png]" }));
    assert_eq!(answer["content"][0]["mime_type"], "image/png", "{answer}");
    assert!(
        answer["content"][0]["data"].as_str().unwrap().len() > 50,
        "{answer}"
    );
}

#[test]
fn errors_are_told_with_their_text_and_their_code() {
    let mut scene = scene(json!({}));
    let fail = scene.call("fake", "fail", &json!({}))["error"].to_string();
    assert!(fail.contains("ToolError: there is no such city"), "{fail}");
    let refuse = scene.ask("fake", "refuse", &json!({}), &json!({ "detail": true }));
    let text = refuse["error"].as_str().unwrap();
    assert!(
        text.contains("McpError: not with these arguments (code -32602)"),
        "{text}"
    );
    assert_eq!(refuse["error_detail"]["data"]["code"], -32602, "{refuse}");
}

#[test]
fn progress_is_passed_on_and_a_call_whose_time_is_over_is_cancelled_at_the_server() {
    let mut scene = scene(json!({ "timeout": 0.5 }));
    let call = json!({
        "name": "slow", "args": { "steps": 600 }, "toolbox_id": "fake", "call_id": "s", "progress": true
    });
    scene.client.send("ovos.tools.invoke", &call);
    let update = scene.client.until("progress", |frame| {
        let update = &frame["data"];
        (frame["type"] == "ovos.tools.invoke.progress" && update["kind"] == "update").then(|| update.clone())
    });
    assert_eq!(update["message"], "step 1", "{update}");
    scene.client.until_answered([&"s".to_owned()]);
    let answer = scene.client.only_answer("s").to_string();
    assert!(answer.contains("TimeoutError"), "{answer}");
    scene.until_trace("fake", "cancelled");
}

#[test]
fn a_server_gets_no_secrets_and_is_promised_nothing() {
    let mut scene = scene(json!({ "env": { "TOKEN": "e-secret" } }));
    let answer = scene.call("fake", "environment", &json!({}));
    let mut names: Vec<&String> = answer["result"].as_object().unwrap().keys().collect();
    names.sort();
    let allowed = [
        "HOME",
        "LANG",
        "LC_CTYPE",
        "PATH",
        "TMPDIR",
        "TOKEN",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
    ];
    assert!(
        names.iter().all(|name| allowed.contains(&name.as_str())) && names.len() > 4,
        "{names:?}"
    );
    scene.call("fake", "ask", &json!({}));
    let trace = scene.until_trace("fake", "-32601");
    assert!(
        trace.contains("initialize {}"),
        "no capability is declared: {trace}"
    );
    let mut texts = vec![answer.to_string()];
    let picture = scene.ask("fake", "picture", &json!({}), &json!({ "content": "inline" }));
    assert_eq!(picture["content"][1]["title"], "of (not shown)", "{picture}");
    texts.push(picture.to_string());
    texts.push(
        scene
            .call("fake", "echo", &json!({ "text": "its e-secret" }))
            .to_string(),
    );
    let slow = json!({
        "name": "slow", "args": { "steps": 1 }, "toolbox_id": "fake", "call_id": "s", "progress": true
    });
    scene.client.send("ovos.tools.invoke", &slow);
    let update = scene.client.until("progress", |frame| {
        let update = &frame["data"];
        (frame["type"] == "ovos.tools.invoke.progress" && update["kind"] == "update").then(|| update.clone())
    });
    assert_eq!(update["message"], "step 1(not shown)", "{update}");
    scene.client.until_answered([&"s".to_owned()]);
    let list = scene
        .client
        .ask("ovos.tools.list", &json!({ "detail": true }))
        .to_string();
    assert!(list.contains("The tool echo.(not shown)"), "{list}");
    texts.push(list);
    for tool in ["fail", "refuse", "die"] {
        let answer = scene.ask("fake", tool, &json!({}), &json!({ "detail": true }));
        assert!(!answer["error"].is_null(), "{answer}");
        texts.push(answer.to_string());
    }
    scene.until("fake", "ready");
    texts.push(scene.client.ask("ovos.tools.status", &json!({})).to_string());
    let log = scene.service.until("a line of the server", |service| {
        let log = service.output();
        log.contains("its token is").then_some(log)
    });
    texts.push(log);
    let texts = texts.join("\n");
    assert!(!texts.contains("e-secret"), "{texts}");
}

#[test]
fn changed_tools_are_renewed() {
    let mut scene = scene(json!({ "trust_hints": true }));
    scene.until_tools("fake", 10);
    scene.call("fake", "renew", &json!({}));
    scene.until_tools("fake", 11);
    let list = scene.client.ask("ovos.tools.list", &json!({ "detail": true }));
    let echo = list["tools"].as_array().unwrap();
    let echo = echo.iter().find(|tool| tool["name"] == "echo").unwrap();
    assert_eq!(echo["meta"]["effect"], "read", "its hint is trusted");
}

#[test]
fn the_adapters_section_is_a_mount_with_the_old_output() {
    let mut scene = Scene::with(&[], |sandbox| {
        let mut section = fake(sandbox, "fake", &[]);
        section["transport"] = json!("stdio");
        section["env"] = json!({ "MARK": "m" });
        section["timeout"] = json!(30);
        (json!({}), json!({ "ovos-mcp-toolbox": section }))
    });
    scene.until("ovos-mcp-toolbox", "ready");
    scene.until_tools("ovos-mcp-toolbox", 10);
    let answer = scene.call("ovos-mcp-toolbox", "fail", &json!({}));
    let raw = json!([{ "type": "text", "text": "there is no such city" }]);
    assert_eq!(
        answer["result"],
        json!({ "content": "there is no such city", "is_error": true, "raw": raw })
    );
    let answer = scene.call("ovos-mcp-toolbox", "environment", &json!({}));
    assert_eq!(answer["result"]["is_error"], false, "{answer}");
}

#[test]
fn a_tool_keeps_its_place_whatever_its_schema_says() {
    let mut scene = Scene::of(|sandbox| json!({ "fake": fake(sandbox, "fake", &["odd_schemas"]) }));
    scene.until_tools("fake", 14);
    for (tool, args) in [
        ("null_default", json!({})),
        ("look_ahead", json!({ "host": "a.example" })),
        ("anchor", json!({ "at": "here", "to": "there" })),
        ("inner_id", json!({ "at": "here" })),
    ] {
        let answer = scene.call("fake", tool, &args);
        let got: Value = serde_json::from_str(answer["result"]["content"].as_str().unwrap()).unwrap();
        assert_eq!(got, args, "{tool}: {answer}");
    }
}

#[test]
fn a_confined_server_reads_only_what_its_section_names() {
    let mut scene = Scene::with(&[], |sandbox| {
        for (folder, text) in [("open", "seen"), ("shut", "hidden")] {
            fs::create_dir(sandbox.path(folder)).unwrap();
            fs::write(sandbox.path(folder).join("file"), text).unwrap();
        }
        // The server writes its trace.
        let trace = sandbox.path("fake.trace");
        fs::write(&trace, "").unwrap();
        let confine = json!({
            "paths_ro": [script("server.py").parent().unwrap(), sandbox.path("open")],
            "paths_rw": [trace],
        });
        let mounts = json!({ "fake": fake(sandbox, "fake", &["reads"]) });
        (mounts, json!({ "fake": { "confine": confine } }))
    });
    scene.until_tools("fake", 11);
    let mut read = |folder: &str| {
        let path = scene.sandbox.path(folder).join("file");
        scene.call("fake", "read", &json!({ "path": path }))
    };
    let answer = read("open");
    assert_eq!(answer["result"]["content"], "seen", "{answer}");
    let answer = read("shut");
    assert!(
        answer["error"].to_string().contains("Permission denied"),
        "{answer}"
    );
}

#[test]
fn variables_of_the_service_reach_the_server_and_are_shown_nowhere() {
    let env = [("SERVICE_TOKEN", "v-secret-1"), ("SERVICE_WORD", "w-secret-2")];
    let mut scene = Scene::with(&env, |sandbox| {
        let mut mount = fake(sandbox, "fake", &["junk", "${env:SERVICE_WORD}"]);
        mount["env"] = json!({ "TOKEN": "${SERVICE_TOKEN}" });
        let unset = json!({ "command": "/bin/true", "env": { "KEY": "${NOT_SET}" } });
        (json!({ "fake": mount, "unset": unset }), json!({}))
    });
    scene.until_tools("fake", 10);
    let trace = scene.until_trace("fake", "started with");
    assert!(
        trace.contains("started with v-secret-1 junk w-secret-2"),
        "{trace}"
    );
    scene.call("fake", "die", &json!({}));
    let status = scene.client.ask("ovos.tools.status", &json!({}));
    let failed = status["failed"].to_string();
    assert!(
        failed.contains("mounts.unset.env.KEY: found ${NOT_SET}, expected the variable `NOT_SET`"),
        "{failed}"
    );
    let text = format!("{status}{}", scene.service.output());
    assert!(
        text.contains("its token is (not shown)") && !text.contains("-secret-"),
        "{text}"
    );
}
