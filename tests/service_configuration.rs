//! The configuration while the service runs: changed files are read again on a message from the bus, and a message
//! itself can change only the log level.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics and prints"
)]

#[allow(dead_code, reason = "the helpers serve several test programs")]
mod support {
    pub(crate) mod client;
    pub(crate) mod process;
    pub(crate) mod python;
    pub(crate) mod scene;
    pub(crate) mod service;
    pub(crate) mod stage;
}

use std::fs;

use serde_json::{Value, json};
use support::client::Client;
use support::process::Process;
use support::stage::Stage;

fn greeting(client: &mut Client) -> Value {
    client.invoke("version", &json!({}))["result"]["greeting"].clone()
}

/// The section of testbed with this greeting.
fn greets(greeting: &str) -> Value {
    json!({ "PHAL": { "ovos-phal-plugin-tools": { "testbed": { "greeting": greeting } } } })
}

/// Calls a tool until the log has a line about it, which needs the level DEBUG.
fn until_debug(service: &mut Process, client: &mut Client) {
    service.until("a line of level DEBUG", |service| {
        client.invoke("ping", &json!({}));
        service.output().contains("call received").then_some(())
    });
}

/// Waits for a text in the log, because the topics of the configuration have no answers.
fn until_logged(service: &mut Process, what: &str) {
    service.until(what, |service| service.output().contains(what).then_some(()));
}

fn pending(client: &mut Client) -> Vec<String> {
    let status = client.ask("ovos.tools.status", &json!({}));
    let keys = status["pending_config"].as_array().expect("pending_config");
    keys.iter().map(|key| key.as_str().unwrap().to_owned()).collect()
}

#[test]
fn changed_files_are_read_again_whatever_the_message_holds() {
    let mut stage = Stage::new(&json!({}));
    stage
        .scene
        .configure(&json!({ "max_calls": 7 }), &greets("good day"));
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let text = format!(r#"{{"type":"configuration.updated","data":{{"deep":{deep}}}}}"#);
    stage.client.send_text(&text);
    until_logged(&mut stage.service, "the configuration changed");
}

#[test]
fn changed_files_are_read_again() {
    let mut stage = Stage::new(&json!({}));
    assert_eq!(greeting(&mut stage.client), "hello");
    assert_eq!(pending(&mut stage.client), [""; 0]);

    stage
        .scene
        .configure(&json!({ "max_calls": 7 }), &greets("good day"));
    assert_eq!(
        pending(&mut stage.client),
        [""; 0],
        "it was not said that the files changed"
    );
    stage.client.send("configuration.updated", &json!({}));
    until_logged(&mut stage.service, "the configuration changed");
    let keys = pending(&mut stage.client);
    for part in ["testbed", "max_calls"] {
        assert!(keys.iter().any(|key| key.contains(part)), "no {part} in {keys:?}");
    }
    assert_eq!(
        greeting(&mut stage.client),
        "hello",
        "a section takes effect when its toolbox is reloaded"
    );

    stage.client.ask("ovos.tools.reload", &json!({}));
    assert_eq!(greeting(&mut stage.client), "good day");
    let keys = pending(&mut stage.client);
    assert!(
        keys.iter().all(|key| key.contains("max_calls")),
        "what waits for a restart: {keys:?}"
    );
    assert!(!keys.is_empty());
}

#[test]
fn a_reload_that_fails_changes_no_permission_either() {
    let mut stage = Stage::new(&json!({}));
    let calls_add = |client: &mut Client| {
        let answer = client.invoke("add", &json!({"a": 1, "b": 2}));
        answer["result"]["result"] == 3
    };
    let testbed = |section: Value| json!({ "PHAL": { "ovos-phal-plugin-tools": { "testbed": section } } });
    let broken = json!({ "tools": { "deny": ["add"] }, "refuse_open": "no device" });
    let mended = json!({ "tools": { "deny": ["add"] } });
    for (section, number, denied) in [(broken, 1, false), (mended, 2, true)] {
        stage.scene.configure(&json!({}), &testbed(section));
        stage.client.send("configuration.updated", &json!({}));
        stage.service.until("the configuration", |service| {
            (service.output().matches("the configuration changed").count() == number).then_some(())
        });
        stage.client.ask("ovos.tools.reload", &json!({}));
        assert_eq!(calls_add(&mut stage.client), !denied, "reload {number}");
        assert_eq!(
            pending(&mut stage.client),
            if denied { vec![] } else { vec!["testbed"] }
        );
    }
}

#[test]
fn a_forbidden_tool_cannot_be_a_step_of_another_tool() {
    let mut stage = Stage::new(&json!({}));
    let key = "PHAL.ovos-phal-plugin-tools.testbed.tools";
    let forbidden = |key: &str| {
        format!(
            "PermissionError: step `count_marks` of the plan is the tool `count_marks`, which the configuration forbids \
             (`{key}`)"
        )
    };
    let too_much = |tool: &str, effect: &str| {
        format!(
            "PlanError: step `{tool}` of the plan has the effect `read`, but it is the tool `{tool}`, whose effect is \
             `{effect}`"
        )
    };
    let rows = [
        (json!({}), "count_marks", None),
        (
            json!({ "deny": ["count_*"] }),
            "count_marks",
            Some(forbidden(&format!("{key}.deny"))),
        ),
        (
            json!({ "allow": ["delegate"] }),
            "count_marks",
            Some(forbidden(&format!("{key}.allow"))),
        ),
        (
            json!({ "allow": ["delegate", "count_marks"] }),
            "count_marks",
            None,
        ),
        (json!({}), "set_mark", Some(too_much("set_mark", "write"))),
        (json!({}), "assemble", Some(too_much("assemble", "motion"))),
    ];
    for (tools, tool, error) in rows {
        let testbed = json!({ "testbed": { "tools": tools } });
        stage.scene.configure(
            &json!({}),
            &json!({ "PHAL": { "ovos-phal-plugin-tools": testbed } }),
        );
        stage.client.send("configuration.updated", &json!({}));
        stage.reload();
        let call = json!({ "name": "delegate", "args": { "tool": tool } });
        let planned = stage.client.ask("ovos.tools.plan", &call);
        let ran = stage.client.ask("ovos.tools.invoke", &call);
        let said = error.map_or(Value::Null, Value::from);
        assert_eq!(
            (&planned["error"], &ran["error"]),
            (&said, &said),
            "{testbed} {tool}"
        );
        assert_eq!(ran["result"]["success"] == true, said.is_null(), "{ran}");
    }
    assert_eq!(
        stage.client.invoke("count_marks", &json!({}))["result"]["marks"],
        0
    );
}

#[test]
fn the_log_level_of_a_file_applies_at_once() {
    let mut stage = Stage::new(&json!({}));
    stage.client.invoke("ping", &json!({}));
    assert!(
        !stage.service.output().contains("call received"),
        "it is DEBUG from the start"
    );
    stage
        .scene
        .configure(&json!({}), &json!({ "logging": { "log_level": "DEBUG" } }));
    stage.client.send("configuration.updated", &json!({}));
    until_debug(&mut stage.service, &mut stage.client);
}

#[test]
fn a_broken_file_changes_nothing() {
    let mut stage = Stage::new(&json!({}));
    let conf = stage.scene.sandbox.path("config/mycroft/mycroft.conf");
    stage
        .scene
        .configure(&json!({ "max_calls": -1 }), &greets("good day"));
    stage.client.send("configuration.updated", &json!({}));
    until_logged(&mut stage.service, "the changed configuration is not used");
    let said = stage.service.output();
    for part in [conf.to_str().unwrap(), "max_calls", "-1"] {
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }
    stage.client.ask("ovos.tools.reload", &json!({}));
    assert_eq!(
        greeting(&mut stage.client),
        "hello",
        "what was in force stays in force"
    );
    // A valid file is used again.
    stage.scene.configure(&json!({}), &greets("good day"));
    stage.client.send("configuration.updated", &json!({}));
    until_logged(&mut stage.service, "the configuration changed");
    stage.client.ask("ovos.tools.reload", &json!({}));
    assert_eq!(greeting(&mut stage.client), "good day");
    fs::metadata(conf).unwrap();
}

#[test]
fn a_wrong_section_leaves_its_toolbox_as_it_was() {
    let mut stage = Stage::new(&json!({}));
    let tools = |client: &mut Client| client.ask("ovos.tools.list", &json!({}))["tools"].clone();
    let before = tools(&mut stage.client);
    let wrong = json!({ "PHAL": { "ovos-phal-plugin-tools": { "testbed": { "isolation": "nowhere" } } } });
    stage.scene.configure(&json!({}), &wrong);
    stage.client.send("configuration.updated", &json!({}));
    until_logged(&mut stage.service, "the configuration changed");
    let reloaded = stage.client.ask("ovos.tools.reload", &json!({ "detail": true }));
    let failed = reloaded["failed"].to_string();
    assert!(
        failed.contains("isolation") && failed.contains("nowhere"),
        "{reloaded}"
    );
    assert_eq!(greeting(&mut stage.client), "hello");
    assert_eq!(tools(&mut stage.client), before);
}

#[test]
fn a_cleared_patch_leaves_the_log_level_of_the_files() {
    let mut stage = Stage::new(&json!({}));
    let line = "the configuration changed";
    let patch = json!({ "config": { "logging": { "log_level": "ERROR" } } });
    stage.client.send("configuration.patch", &patch);
    stage.scene.configure(&json!({ "max_calls": 7 }), &json!({}));
    stage.client.send("configuration.updated", &json!({}));
    // A reload waits until the files have been read.
    stage.client.ask("ovos.tools.reload", &json!({}));
    assert!(!pending(&mut stage.client).is_empty());

    stage.client.send("configuration.patch.clear", &json!({}));
    stage.scene.configure(&json!({ "max_calls": 8 }), &json!({}));
    stage.client.send("configuration.updated", &json!({}));
    until_logged(&mut stage.service, line);
    let said = stage.service.output();
    assert_eq!(
        said.matches(line).count(),
        1,
        "the patch hid the first line:\n{said}"
    );
}

#[test]
fn a_patch_never_reaches_our_section() {
    let mut stage = Stage::new(&json!({}));
    let ours = json!({ "service": { "operator_tools": true }, "testbed": { "greeting": "patched" } });
    let patch = json!({ "config": { "PHAL": { "ovos-phal-plugin-tools": ours }, "logging": { "log_level": "DEBUG" } } });
    let message = json!({ "type": "configuration.patch", "data": patch, "context": { "source": "mallory" } });
    stage.client.send_text(&message.to_string());
    // The level of the same patch applies, so the whole patch has been read by then.
    until_debug(&mut stage.service, &mut stage.client);
    let said = stage.service.output();
    let warning = said
        .lines()
        .find(|line| line.contains("ignored a configuration.patch"));
    assert!(warning.is_some_and(|line| line.contains("mallory")), "{said}");

    stage.client.ask("ovos.tools.reload", &json!({}));
    assert_eq!(greeting(&mut stage.client), "hello");
    let reset = stage.client.invoke("reset_stop", &json!({}));
    assert!(
        reset["error"].as_str().unwrap().starts_with("PermissionError: "),
        "{reset}"
    );
    assert_eq!(pending(&mut stage.client), [""; 0]);
}
