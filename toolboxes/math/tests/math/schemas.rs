//! schemas/toolboxes/math.json is what the toolbox lists.

use std::path::Path;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::{Harness, assert_tools_committed, built};

#[test]
fn committed_tools_are_what_the_toolbox_lists() {
    let math = Harness::load(&built("math"), json!({})).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/toolboxes/math.json");
    assert_tools_committed(&math, &file);
}
