//! The keys of the doors.

use ovos_toolbox_wire::Effect;
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
    assert!(door.http_token && !door.output_schemas && !door.run_steps);
    assert!(door.http_hosts.is_empty() && door.http_origins.is_empty());
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
    });
    let config = Machine::with_service(json!({"doors": {"mcp": door}}))
        .load()
        .unwrap();
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
            json!({"mcp": {"tools": {"allow": [1]}}}),
            "doors.mcp.tools.allow: found a list, expected a list of tool names",
        ),
        (
            json!({"mcp": {"http_hosts": [" "]}}),
            "doors.mcp.http_hosts: found a list, expected a list of texts",
        ),
        (
            json!({"mcp": {"warn_list_bytes": 1}}),
            "doors.mcp.warn_list_bytes: found 1, expected a whole number from 1024",
        ),
    ] {
        let machine = Machine::with_service(json!({"doors": doors}));
        let told = machine.load().unwrap_err().to_string();
        assert!(told.contains(expected), "no {expected:?} in {told}");
    }
}
