//! Hume EVI's function tools, as `session_settings` and the tools API take them.

use serde_json::{Value, json};

use super::ExportTool;
use super::parameters::parameters;

/// `fallback_content` is left out: what to say when a tool fails is decided where the voice is configured.
pub(super) fn tool(tool: &ExportTool<'_>) -> Value {
    json!({
        "type": "function",
        "name": tool.exported_name,
        "description": tool.description,
        "parameters": parameters(tool.argument_schema).to_string(),
    })
}
