//! The configuration while the service runs: files that changed are read again when the bus says so, and what the bus
//! itself says changes the log level at most.

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
}

use std::fs;

use serde_json::{Value, json};
use support::client::Client;
use support::process::Process;
use support::scene::Scene;
use support::service::BusKind;

struct Stage {
    scene: Scene,
    client: Client,
    service: Process,
    _bus: Process,
}

fn stage() -> Stage {
    let scene = Scene::new(&json!({}));
    let bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let service = scene.service(&mut client);
    Stage {
        scene,
        client,
        service,
        _bus: bus,
    }
}

fn greeting(client: &mut Client) -> Value {
    client.invoke("version", &json!({}))["result"]["greeting"].clone()
}

/// Testbed's section says this.
fn greets(greeting: &str) -> Value {
    json!({ "PHAL": { "ovos-phal-plugin-tools": { "testbed": { "greeting": greeting } } } })
}

/// Calls a tool until the log shows it, which only a level of DEBUG does.
fn until_debug(service: &mut Process, client: &mut Client) {
    service.until("a line of level DEBUG", |service| {
        client.invoke("ping", &json!({}));
        service.output().contains("call runs").then_some(())
    });
}

/// Until the log says something; the topics of the configuration have no answers.
fn until_logged(service: &mut Process, what: &str) {
    service.until(what, |service| service.output().contains(what).then_some(()));
}

fn pending(client: &mut Client) -> Vec<String> {
    let status = client.ask("ovos.tools.status", &json!({}));
    let keys = status["pending_config"].as_array().expect("pending_config");
    keys.iter().map(|key| key.as_str().unwrap().to_owned()).collect()
}

#[test]
fn changed_files_are_read_again() {
    let Stage {
        scene,
        mut client,
        mut service,
        _bus,
    } = stage();
    assert_eq!(greeting(&mut client), "hello");
    assert_eq!(pending(&mut client), [""; 0]);

    scene.configure(&json!({ "max_calls": 7 }), &greets("good day"));
    assert_eq!(
        pending(&mut client),
        [""; 0],
        "nobody said that the files changed"
    );
    client.send("configuration.updated", &json!({}));
    until_logged(&mut service, "the configuration changed");
    let keys = pending(&mut client);
    for part in ["testbed", "max_calls"] {
        assert!(keys.iter().any(|key| key.contains(part)), "no {part} in {keys:?}");
    }
    assert_eq!(
        greeting(&mut client),
        "hello",
        "a section takes effect when its toolbox is reloaded"
    );

    client.ask("ovos.tools.reload", &json!({}));
    assert_eq!(greeting(&mut client), "good day");
    let keys = pending(&mut client);
    assert!(
        keys.iter().all(|key| key.contains("max_calls")),
        "what waits for a restart: {keys:?}"
    );
    assert!(!keys.is_empty());
}

#[test]
fn a_reload_that_fails_changes_no_permission_either() {
    let Stage {
        scene,
        mut client,
        mut service,
        _bus,
    } = stage();
    let calls_add = |client: &mut Client| {
        let answer = client.invoke("add", &json!({"a": 1, "b": 2}));
        answer["result"]["result"] == 3
    };
    let testbed = |section: Value| json!({ "PHAL": { "ovos-phal-plugin-tools": { "testbed": section } } });
    let broken = json!({ "tools": { "deny": ["add"] }, "refuse_open": "no device" });
    let mended = json!({ "tools": { "deny": ["add"] } });
    for (section, number, denied) in [(broken, 1, false), (mended, 2, true)] {
        scene.configure(&json!({}), &testbed(section));
        client.send("configuration.updated", &json!({}));
        service.until("the configuration", |service| {
            (service.output().matches("the configuration changed").count() == number).then_some(())
        });
        client.ask("ovos.tools.reload", &json!({}));
        assert_eq!(calls_add(&mut client), !denied, "reload {number}");
        assert_eq!(
            pending(&mut client),
            if denied { vec![] } else { vec!["testbed"] }
        );
    }
}

#[test]
fn the_log_level_of_a_file_applies_at_once() {
    let Stage {
        scene,
        mut client,
        mut service,
        _bus,
    } = stage();
    client.invoke("ping", &json!({}));
    assert!(
        !service.output().contains("call runs"),
        "it is DEBUG from the start"
    );
    scene.configure(&json!({}), &json!({ "logging": { "log_level": "DEBUG" } }));
    client.send("configuration.updated", &json!({}));
    until_debug(&mut service, &mut client);
}

#[test]
fn a_broken_file_changes_nothing() {
    let Stage {
        scene,
        mut client,
        mut service,
        _bus,
    } = stage();
    let conf = scene.sandbox.path("config/mycroft/mycroft.conf");
    scene.configure(&json!({ "max_calls": -1 }), &greets("good day"));
    client.send("configuration.updated", &json!({}));
    until_logged(&mut service, "the changed configuration is not used");
    let said = service.output();
    for part in [conf.to_str().unwrap(), "max_calls", "-1"] {
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }
    client.ask("ovos.tools.reload", &json!({}));
    assert_eq!(greeting(&mut client), "hello", "what was in force stays in force");
    // And it recovers.
    scene.configure(&json!({}), &greets("good day"));
    client.send("configuration.updated", &json!({}));
    until_logged(&mut service, "the configuration changed");
    client.ask("ovos.tools.reload", &json!({}));
    assert_eq!(greeting(&mut client), "good day");
    fs::metadata(conf).unwrap();
}

#[test]
fn a_wrong_section_leaves_its_toolbox_as_it_was() {
    let Stage {
        scene,
        mut client,
        mut service,
        _bus,
    } = stage();
    let tools = |client: &mut Client| client.ask("ovos.tools.list", &json!({}))["tools"].clone();
    let before = tools(&mut client);
    let wrong = json!({ "PHAL": { "ovos-phal-plugin-tools": { "testbed": { "isolation": "nowhere" } } } });
    scene.configure(&json!({}), &wrong);
    client.send("configuration.updated", &json!({}));
    until_logged(&mut service, "the configuration changed");
    let reloaded = client.ask("ovos.tools.reload", &json!({ "detail": true }));
    let failed = reloaded["failed"].to_string();
    assert!(
        failed.contains("isolation") && failed.contains("nowhere"),
        "{reloaded}"
    );
    assert_eq!(greeting(&mut client), "hello");
    assert_eq!(tools(&mut client), before);
}

#[test]
fn a_patch_never_reaches_our_section() {
    let Stage {
        scene: _scene,
        mut client,
        mut service,
        _bus,
    } = stage();
    let ours = json!({ "service": { "operator_tools": true }, "testbed": { "greeting": "patched" } });
    let patch = json!({ "config": { "PHAL": { "ovos-phal-plugin-tools": ours }, "logging": { "log_level": "DEBUG" } } });
    let message = json!({ "type": "configuration.patch", "data": patch, "context": { "source": "mallory" } });
    client.send_text(&message.to_string());
    // Of the same patch the level applies, so all of it has been seen by then.
    until_debug(&mut service, &mut client);
    let said = service.output();
    let warning = said
        .lines()
        .find(|line| line.contains("ignored a configuration.patch"));
    assert!(warning.is_some_and(|line| line.contains("mallory")), "{said}");

    client.ask("ovos.tools.reload", &json!({}));
    assert_eq!(greeting(&mut client), "hello");
    let reset = client.invoke("reset_stop", &json!({}));
    assert!(
        reset["error"].as_str().unwrap().starts_with("PermissionError: "),
        "{reset}"
    );
    assert_eq!(pending(&mut client), [""; 0]);
}
