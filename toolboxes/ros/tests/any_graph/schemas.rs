//! schemas/toolboxes/ros.json is what the toolbox lists.

use std::path::Path;

use ovos_toolbox_sdk::testing::{Harness, assert_tools_committed};
use ros::Ros;
use serde_json::json;

#[test]
fn committed_tools_are_what_the_toolbox_lists() {
    let ros = Harness::open::<Ros>(json!({})).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/toolboxes/ros.json");
    assert_tools_committed(&ros, &file);
}

#[test]
fn a_section_that_makes_no_sense_is_refused() {
    for (config, expected) in [
        (json!({"allow": {"publish": {"/a b": {}}}}), "is not a ROS name"),
        (json!({"types": ["/nowhere"]}), "/nowhere"),
        (json!({"allow": {"publish": {"/a": {"linaer": 1}}}}), "linaer"),
    ] {
        let refused = Harness::open::<Ros>(config).err().unwrap();
        assert!(refused.to_string().contains(expected), "{refused}");
    }
}
