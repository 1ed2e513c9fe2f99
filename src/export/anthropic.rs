//! Anthropic's format of custom tools.

use serde_json::{Value, json};

use super::ExportTool;
use super::parameters::parameters;

pub(super) fn tool(tool: &ExportTool<'_>) -> Value {
    json!({
        "name": tool.exported_name,
        "description": tool.description,
        "input_schema": parameters(tool.argument_schema),
    })
}
