//! What clients are promised, driven by the scripts of tests/python.

use serde_json::json;

use crate::door::{Listening, Stage, binary, service_binary};
use crate::support::python::mcp_python;
use crate::support::scene::ready;

/// Everything that a client does, in one session of it.
fn driven(peer: &str, era: &str, transport: &str) {
    if mcp_python().is_none() {
        return;
    }
    let mut stage = Stage::new(&json!({}));
    let listening = (transport == "http").then(|| Listening::start(&stage));
    let (url, token) = match &listening {
        Some(door) => (door.url.as_str(), door.token.as_str()),
        None => ("", ""),
    };
    let (door, motor_log, bus) = (binary(), stage.motor_log(), stage.scene.url());
    let arguments = [
        peer,
        era,
        transport,
        door.to_str().unwrap(),
        service_binary(),
        &bus,
        &motor_log,
        url,
        token,
    ];
    let mut script = stage.script("mcp_clients.py", &arguments);
    // One after the other, because each of them may take its time.
    for sign in [": progresses", ": stops_of_both_kinds", "RESTART THE SERVICE"] {
        script.until(sign, |script| script.output().contains(sign).then_some(()));
    }
    stage.scene.until_at_rest();
    stage.service.kill();
    stage.service = stage.scene.service_started(&[]);
    ready(&mut stage.service, &mut stage.client);
    let said = script.finish();
    println!("{said}");
    assert!(said.contains("everything is as promised"), "{said}");
}

#[test]
fn mcp_in_the_legacy_era_over_stdio() {
    driven("mcp", "legacy", "stdio");
}

#[test]
fn mcp_in_the_modern_era_over_stdio() {
    driven("mcp", "modern", "stdio");
}

#[test]
fn mcp_in_the_legacy_era_over_http() {
    driven("mcp", "legacy", "http");
}

#[test]
fn fastmcp_in_the_modern_era_over_http() {
    driven("fastmcp", "modern", "http");
}

#[test]
fn fastmcp_in_the_modern_era_over_stdio() {
    driven("fastmcp", "modern", "stdio");
}

/// A client that closes its connection, resets it or gives no sign of life while something moves for it.
#[test]
fn what_moves_for_a_client_that_vanishes_comes_to_rest() {
    if mcp_python().is_none() {
        return;
    }
    let stage = Stage::new(&json!({}));
    let listening = Listening::start(&stage);
    let (door, motor_log, bus) = (binary(), stage.motor_log(), stage.scene.url());
    let arguments = [
        door.to_str().unwrap(),
        &bus,
        &motor_log,
        &listening.url,
        &listening.token,
    ];
    let said = stage.script("mcp_vanishes.py", &arguments).finish();
    println!("{said}");
    assert!(said.contains("everything comes to rest"), "{said}");
}
