//! schemas/toolboxes/robot.json is what the toolbox lists, and schemas/recognition what a recogniser answers.

use std::path::Path;

use ovos_toolbox_sdk::testing::{Harness, assert_tools_committed};
use robot::recognition::ThingsAnswer;
use robot::robots::Robots;
use serde_json::json;

#[test]
fn committed_tools_are_what_the_toolbox_lists() {
    let robot = Harness::open::<Robots>(json!({})).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/toolboxes/robot.json");
    assert_tools_committed(&robot, &file);
}

#[test]
fn the_committed_answer_of_a_recogniser_is_the_one_that_is_read() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/recognition/what_is_there.json");
    let schema = format!("{:#}\n", json!(schemars::schema_for!(ThingsAnswer)));
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&file, &schema).unwrap();
    }
    assert!(
        std::fs::read_to_string(&file).unwrap_or_default() == schema,
        "{} is not what is read: run this test with UPDATE_SCHEMAS=1",
        file.display()
    );
}
