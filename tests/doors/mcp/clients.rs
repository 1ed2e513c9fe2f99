//! What clients are promised, driven by the scripts of tests/python.

use serde_json::json;

use crate::mcp::door::{Listening, Stage, binary, service_binary};
use crate::support::process::Process;
use crate::support::python::mcp_python;
use crate::support::scene::ready;
use crate::support::service::plugins_with;

/// A script that drives a published client in an era over a transport, and the door over HTTP where that is meant.
fn script(stage: &Stage, name: &str, [peer, era, transport]: [&str; 3]) -> (Process, Option<Listening>) {
    let listening = (transport == "http").then(|| Listening::start(stage));
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
    (stage.script(name, &arguments), listening)
}

/// Everything that a client does, in one session of it.
fn driven(peer: &str, era: &str, transport: &str) {
    if mcp_python().is_none() {
        return;
    }
    // What is answered with a handle is in `patience`.
    let mut stage = Stage::new(&json!({ "reply_within_ms": 600_000 }));
    let (mut script, _listening) = script(&stage, "mcp_clients.py", [peer, era, transport]);
    // One after the other, because each of them may take its time.
    for sign in [": progresses", ": stops_of_both_kinds", "RESTART THE SERVICE"] {
        script.until(sign, |script| script.output().contains(sign).then_some(()));
    }
    stage.scene.until_at_rest();
    stage.service.kill();
    stage.service = stage.scene.service_started(&[]);
    ready(&mut stage.service, &mut stage.client);
    let output = script.finish();
    println!("{output}");
    assert!(output.contains("everything is as promised"), "{output}");
}

#[test]
fn mcp_in_the_legacy_era_over_stdio() {
    driven("mcp", "legacy", "stdio");
}

#[test]
fn mcp_in_the_legacy_era_over_http() {
    driven("mcp", "legacy", "http");
}

#[test]
fn mcp_in_the_modern_era_over_stdio() {
    driven("mcp", "modern", "stdio");
}

#[test]
fn mcp_in_the_modern_era_over_http() {
    driven("mcp", "modern", "http");
}

#[test]
fn fastmcp_in_the_legacy_era_over_stdio() {
    driven("fastmcp", "legacy", "stdio");
}

#[test]
fn fastmcp_in_the_legacy_era_over_http() {
    driven("fastmcp", "legacy", "http");
}

#[test]
fn fastmcp_in_the_modern_era_over_stdio() {
    driven("fastmcp", "modern", "stdio");
}

#[test]
fn fastmcp_in_the_modern_era_over_http() {
    driven("fastmcp", "modern", "http");
}

/// A person has to confirm what moves a machine that does not say that it is simulated.
fn confirmed(peer: &str, era: &str, transport: &str) {
    if mcp_python().is_none() {
        return;
    }
    let stage = Stage::on_hardware();
    let (script, _listening) = script(&stage, "mcp_confirms.py", [peer, era, transport]);
    let output = script.finish();
    println!("{output}");
    assert!(output.contains("everything is confirmed"), "{output}");
}

#[test]
fn a_user_confirms_in_the_legacy_era_over_stdio() {
    confirmed("mcp", "legacy", "stdio");
}

#[test]
fn a_user_confirms_in_the_legacy_era_over_http() {
    confirmed("mcp", "legacy", "http");
}

#[test]
fn a_user_confirms_in_the_modern_era_over_stdio() {
    confirmed("mcp", "modern", "stdio");
}

#[test]
fn a_user_of_fastmcp_confirms_in_the_modern_era_over_http() {
    confirmed("fastmcp", "modern", "http");
}

#[test]
fn a_user_of_fastmcp_confirms_in_the_legacy_era_over_stdio() {
    confirmed("fastmcp", "legacy", "stdio");
}

/// A model searches the tools, and calls what it found.
fn found(peer: &str, era: &str, transport: &str) {
    if mcp_python().is_none() {
        return;
    }
    let stage = Stage::new(&json!({ "find_tools": true }));
    let (script, _listening) = script(&stage, "mcp_finds.py", [peer, era, transport]);
    let output = script.finish();
    println!("{output}");
    assert!(output.contains("everything is found"), "{output}");
}

#[test]
fn tools_are_found_in_the_legacy_era_over_stdio() {
    found("mcp", "legacy", "stdio");
}

#[test]
fn tools_are_found_in_the_legacy_era_over_http() {
    found("mcp", "legacy", "http");
}

#[test]
fn tools_and_skills_are_found_by_fastmcp_in_the_modern_era_over_stdio() {
    found("fastmcp", "modern", "stdio");
}

#[test]
fn tools_are_found_by_fastmcp_in_the_modern_era_over_http() {
    found("fastmcp", "modern", "http");
}

/// A client that closes its connection, resets it, does not read or gives no sign of life while something moves for it.
/// Another one, beside them, is answered as ever.
#[test]
fn what_moves_for_a_client_that_vanishes_comes_to_rest() {
    if mcp_python().is_none() {
        return;
    }
    let mut stage = Stage::new(&json!({}));
    let listening = Listening::start(&stage);
    let (door, motor_log, bus) = (binary(), stage.motor_log(), stage.scene.url());
    let arguments = [
        door.to_str().unwrap(),
        &bus,
        &motor_log,
        &listening.url,
        &listening.token,
    ];
    let output = stage.script("mcp_vanishes.py", &arguments).finish();
    println!("{output}");
    assert!(output.contains("everything comes to rest"), "{output}");
    let calls = stage.client.ask("ovos.tools.status", &json!({}))["calls"].clone();
    assert_eq!(calls, json!([]), "calls that outlive their clients");
}

#[test]
fn a_robots_joints_stop_within_a_fifth_of_a_radian_of_a_cancel() {
    if mcp_python().is_none() {
        return;
    }
    let stage = Stage::with(&json!({ "reply_within_ms": 600_000 }), &[plugins_with("robot")]);
    let listening = Listening::start(&stage);
    let (door, bus) = (binary(), stage.scene.url());
    let arguments = [door.to_str().unwrap(), &bus, &listening.url, &listening.token];
    let output = stage.script("mcp_robot.py", &arguments).finish();
    println!("{output}");
    assert!(output.contains("the joints stop"), "{output}");
}
