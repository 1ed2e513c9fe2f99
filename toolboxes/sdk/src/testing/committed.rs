//! The tools of a toolbox as a file of its repository. Read [`assert_tools_committed`].

use std::path::Path;

use ovos_toolbox_wire::ToolList;
use serde_json::json;

use super::harness::Harness;

/// Compares the tools of a toolbox with those in `file`, which is committed, so that a review sees every change of what models
/// read. With `UPDATE_SCHEMAS` in the environment, the file is written first.
///
/// # Panics
/// The tools differ from those in the file, or the file cannot be written.
pub fn assert_tools_committed(toolbox: &Harness, file: &Path) {
    let tools = toolbox.tools();
    let text = format!("{:#}\n", json!(ToolList { tools }));
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        let written = std::fs::write(file, &text);
        written.unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
    }
    assert!(
        std::fs::read_to_string(file).unwrap_or_default() == text,
        "{} is not what the toolbox lists: run this test with UPDATE_SCHEMAS=1 and look at the difference, which is what models \
         are told",
        file.display()
    );
}
