//! schemas/toolboxes/robot.json is what the toolbox lists.

use std::path::Path;

use ovos_toolbox_sdk::testing::{Harness, assert_tools_committed};
use robot::robots::Robots;
use serde_json::json;

#[test]
fn committed_tools_are_what_the_toolbox_lists() {
    let robot = Harness::open::<Robots>(json!({})).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/toolboxes/robot.json");
    assert_tools_committed(&robot, &file);
}
