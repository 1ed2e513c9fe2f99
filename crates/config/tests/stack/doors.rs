//! The keys of the doors.

use std::time::Duration;

use ovos_toolbox_wire::{Audience, Effect};
use ovos_tools_config::{Interrupt, LongCalls};
use serde_json::json;

use crate::machine::Machine;

#[test]
fn without_files_a_door_shows_everything_and_asks_for_a_token() {
    let machine = Machine::new(&[], &[]);
    let door = machine.load().unwrap().doors.mcp.clone();
    assert!(
        Effect::ALL
            .iter()
            .all(|effect| door.toolset.permits("any", "box", *effect))
    );
    assert_eq!(door.toolset.audience, [Audience::Model]);
    assert!(door.http_token && !door.output_schemas && !door.run_steps);
    assert!(door.http_hosts.is_empty() && door.http_origins.is_empty() && !door.find_tools);
    assert_eq!(
        door.token_file,
        machine.path("home/.local/state/ovos-tools/mcp-token")
    );
}

#[test]
fn a_tool_is_shown_where_all_filters_permit_it() {
    let door = json!({
        "tools": {"deny": ["joint_*"]},
        "toolboxes": {"allow": ["arm"]},
        "effects": {"allow": ["read", "motion"]},
        "audience": ["model", "person"],
    });
    let config = Machine::with_service(json!({"doors": {"mcp": door}}))
        .load()
        .unwrap();
    assert_eq!(config.doors.mcp.toolset.audience, Audience::ALL);
    for (tool, toolbox, effect, shown) in [
        ("wave", "arm", Effect::Motion, true),
        ("joint_move", "arm", Effect::Motion, false),
        ("wave", "leg", Effect::Motion, false),
        ("wave", "arm", Effect::Write, false),
    ] {
        let found = config.doors.mcp.toolset.permits(tool, toolbox, effect);
        assert_eq!(found, shown, "{tool} of {toolbox} ({effect:?})");
    }
}

#[test]
fn the_agent_has_the_budgets_of_the_drone_document_and_those_that_are_written() {
    let machine = Machine::new(&[], &[]);
    let agent = machine.load().unwrap().doors.agent.clone();
    let budgets = &agent.budgets;
    assert_eq!(
        (budgets.rotation_deg, budgets.forward_m, budgets.battery_pct),
        (360.0, 5.0, 25.0)
    );
    let written = json!({"key_env": "MY_KEY", "temperature": 0.2, "budgets": {"steps": 7, "time_ms": 9000, "forward_m": 2},
        "tools": {"deny": ["arm"]}});
    let config = Machine::with_service(json!({"doors": {"agent": written}}))
        .load()
        .unwrap();
    let agent = &config.doors.agent;
    assert_eq!((agent.key_env.as_str(), agent.temperature), ("MY_KEY", Some(0.2)));
    assert_eq!(
        (
            agent.budgets.steps,
            agent.budgets.time.as_secs(),
            agent.budgets.forward_m
        ),
        (7, 9, 2.0)
    );
    assert!(!agent.toolset.permits("arm", "drone", Effect::Motion));
}

#[test]
fn a_voice_has_defaults_and_keys_of_its_own() {
    let voice = Machine::new(&[], &[]).load().unwrap().doors.voice.clone();
    assert_eq!(
        (voice.interrupt, voice.long_calls, voice.announce_after),
        (Interrupt::Ignore, LongCalls::Wait, Duration::from_secs(4))
    );
    assert_eq!(
        (
            voice.hume.url.as_str(),
            voice.hume.key_env.as_str(),
            voice.hume.config_id
        ),
        ("wss://api.hume.ai/", "HUME_API_KEY", None)
    );
    assert_eq!(
        (voice.openai.url.as_str(), voice.openai.key_env.as_str()),
        ("wss://api.openai.com/", "OPENAI_API_KEY")
    );

    let written = json!({
        "effects": {"deny": ["write"]}, "interrupt": "cancel_motion", "long_calls": "announce", "announce_after_ms": 500,
        "hume": {"url": "ws://127.0.0.1:8790", "key_env": "MY_KEY", "config_id": "c"},
    });
    let machine = Machine::with_service(json!({"doors": {"voice": written}}));
    let voice = machine.load().unwrap().doors.voice.clone();
    assert!(!voice.toolset.permits("any", "box", Effect::Write));
    assert_eq!(
        (voice.interrupt, voice.long_calls, voice.announce_after),
        (
            Interrupt::CancelMotion,
            LongCalls::Announce,
            Duration::from_millis(500)
        )
    );
    assert_eq!(
        (
            voice.hume.url.as_str(),
            voice.hume.key_env.as_str(),
            voice.hume.config_id
        ),
        ("ws://127.0.0.1:8790/", "MY_KEY", Some("c".to_owned()))
    );
}

#[test]
fn a_wrong_key_of_a_door_is_explained() {
    for (doors, expected) in [
        (
            json!({"mpc": {}}),
            "doors.mpc: unknown key (did you mean \"mcp\"?)",
        ),
        (
            json!({"mcp": {"output_schema": true}}),
            "doors.mcp.output_schema: unknown key",
        ),
        (
            json!({"mcp": {"effects": {"deny": ["moving"]}}}),
            "doors.mcp.effects.deny: found \"moving\", expected a list of \"read\", \"write\", \"motion\"",
        ),
        (
            json!({"mcp": {"audience": ["people"]}}),
            "doors.mcp.audience: found a list, expected a list of \"model\" and \"person\"",
        ),
        (
            json!({"voice": {"audience": []}}),
            "doors.voice.audience: found a list, expected a list of \"model\" and \"person\"",
        ),
        (
            json!({"mcp": {"tools": {"allow": [1]}}}),
            "doors.mcp.tools.allow: found a list, expected a list of tool names",
        ),
        (
            json!({"mcp": {"http_hosts": [" "]}}),
            "doors.mcp.http_hosts: found a list, expected a list of strings",
        ),
        (
            json!({"voice": {"interrupt": "stop"}}),
            "doors.voice.interrupt: found \"stop\", expected \"ignore\" or \"cancel_motion\"",
        ),
        (
            json!({"voice": {"announce_after_ms": 1}}),
            "doors.voice.announce_after_ms: found 1, expected a whole number of milliseconds from 100",
        ),
        (
            json!({"voice": {"hume": {"url": "wss://:secret@api.hume.ai"}}}),
            "doors.voice.hume.url: found",
        ),
        (
            json!({"voice": {"hume": {"url": "ws://api.hume.ai"}}}),
            "doors.voice.hume.url: found \"ws://api.hume.ai\", expected an address like wss://host",
        ),
        (
            json!({"voice": {"hume": {"api_key": "secret"}}}),
            "doors.voice.hume.api_key: unknown key",
        ),
        (
            json!({"voice": {"openai": {"key_env": "sk-proj-x"}}}),
            "doors.voice.openai.key_env: found something else, expected the name of an environment variable",
        ),
        (
            json!({"mcp": {"warn_list_bytes": 1}}),
            "doors.mcp.warn_list_bytes: found 1, expected a whole number from 1024",
        ),
        (
            json!({"agent": {"url": "localhost:8080"}}),
            "doors.agent.url: found \"localhost:8080\", expected a URL such as",
        ),
        (
            json!({"agent": {"key_env": "sk-123"}}),
            "doors.agent.key_env: found a string, expected the name of an environment variable",
        ),
        (
            json!({"agent": {"headers": {"x y": "z"}}}),
            "doors.agent.headers: found an object, expected an object of header names and strings",
        ),
        (
            json!({"agent": {"calls": "both"}}),
            "doors.agent.calls: found \"both\", expected \"native\" or \"text\"",
        ),
        (
            json!({"agent": {"max_steps": 3}}),
            "doors.agent.max_steps: unknown key",
        ),
        (
            json!({"agent": {"budgets": {"forward_m": -1}}}),
            "doors.agent.budgets.forward_m: found -1, expected a number of metres from 0",
        ),
        (
            json!({"mcp": {"sign_in": {"issuer": "http://auth.test", "public_url": "https://robot.test/mcp"}}}),
            "doors.mcp.sign_in.issuer: found \"http://auth.test\", expected the URL of an issuer",
        ),
        (
            json!({"mcp": {"sign_in": {"issuer": "https://auth.test/?a=1", "public_url": "https://robot.test/mcp"}}}),
            "doors.mcp.sign_in.issuer: found",
        ),
        (
            json!({"mcp": {"sign_in": {"issuer": "https://auth.test"}}}),
            "doors.mcp.sign_in.public_url: found nothing, expected the URL under which clients reach the door",
        ),
        (
            json!({"mcp": {"sign_in": {"public_url": "https://robot.test/mcp"}}}),
            "doors.mcp.sign_in.issuer: found nothing, expected the issuer",
        ),
        (
            json!({"mcp": {"sign_in": {"allow": [{"principal": "door:ada"}]}}}),
            "doors.mcp.sign_in.allow: found a list, expected a list of objects {subject, client, principal}",
        ),
        (
            json!({"mcp": {"sign_in": {"allow": [{"subject": "ada", "principal": "door"}]}}}),
            "doors.mcp.sign_in.allow: found a list, expected",
        ),
        (
            json!({"mcp": {"sign_in": {"allow": [{"subject": "ada", "principal": "local:ada"}]}}}),
            "doors.mcp.sign_in.allow: found a list, expected",
        ),
        (
            json!({"mcp": {"sign_in": {"allow": [{"subject": " ", "principal": "door:ada"}]}}}),
            "doors.mcp.sign_in.allow: found a list, expected",
        ),
        (
            json!({"mcp": {"sign_in": {"allow": [{"subject": "ada", "principal": "door:ada", "scopes": ["move"]}]}}}),
            "doors.mcp.sign_in.allow: found a list, expected",
        ),
        (
            json!({"agent": {"budgets": {"rotation": 3}}}),
            "doors.agent.budgets.rotation: unknown key (did you mean \"rotation_deg\"?)",
        ),
    ] {
        let machine = Machine::with_service(json!({"doors": doors}));
        let error = machine.load().unwrap_err().to_string();
        assert!(error.contains(expected), "no {expected:?} in {error}");
        assert!(!error.contains("sk-123"), "a secret is shown: {error}");
    }
}
