//! Hume EVI's format of function tools, for `session_settings` and the tools API.

use serde_json::{Value, json};

use super::ExportTool;
use super::parameters::parameters;

/// Omits `fallback_content`: what to say when a tool fails is configured with the voice.
pub(super) fn tool(tool: &ExportTool<'_>) -> Value {
    json!({
        "type": "function",
        "name": tool.exported_name,
        "description": tool.description,
        "parameters": parameters(tool.argument_schema).to_string(),
    })
}
