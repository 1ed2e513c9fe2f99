//! schemas/toolboxes/gstreamer.json is what the toolbox lists, and what its tools are.

use std::path::Path;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::{Harness, assert_tools_committed};

fn open(state: &Path) -> Harness {
    crate::rig::harness(json!({"state_dir": state})).unwrap()
}

#[test]
fn committed_tools_are_what_the_toolbox_lists() {
    let state = tempfile::tempdir().unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/toolboxes/gstreamer.json");
    assert_tools_committed(&open(state.path()), &file);
}

/// The discovery tools have effect read, and the argument names that models know.
#[test]
fn the_seven_tools_of_discovery_read_and_have_their_arguments() {
    let state = tempfile::tempdir().unwrap();
    let toolbox = open(state.path());
    for (tool, arguments, required) in [
        ("get_board_info", vec![], vec![]),
        ("list_video_devices", vec![], vec![]),
        ("check_storage", vec!["path"], vec![]),
        ("get_encoder_info", vec!["encoder", "media"], vec![]),
        ("get_gst_element_info", vec!["element"], vec!["element"]),
        ("validate_pipeline", vec!["pipeline"], vec!["pipeline"]),
        ("get_running_instances", vec![], vec![]),
    ] {
        let definition = toolbox.tool(tool);
        assert_eq!(definition.effect, Effect::Read, "{tool}");
        assert!(!definition.description.is_empty(), "{tool}");
        let schema = &definition.argument_schema;
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, arguments, "{tool}");
        assert_eq!(
            schema.get("required").cloned().unwrap_or(json!([])),
            json!(required),
            "{tool}"
        );
    }
    let encoder = toolbox.tool("get_encoder_info").argument_schema.to_string();
    for value in ["h264", "h265", "all"] {
        assert!(encoder.contains(&format!("\"{value}\"")), "{encoder}");
    }
}
