//! schemas/toolboxes/drone.json is what the toolbox lists.

use std::path::Path;

use drone::Drone;
use ovos_toolbox_sdk::testing::{Harness, assert_tools_committed};
use serde_json::json;

#[test]
fn committed_tools_are_what_the_toolbox_lists() {
    let drone = Harness::open::<Drone>(json!({"mavsdk_server": "/nowhere", "px4_sim": "/nowhere"})).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/toolboxes/drone.json");
    assert_tools_committed(&drone, &file);
}
