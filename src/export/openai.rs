//! OpenAI's format of function tools: nested in chat completions, flat in responses.

use serde_json::{Value, json};

use super::ExportTool;
use super::parameters::parameters;

pub(super) fn chat(tool: &ExportTool<'_>) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.exported_name,
            "description": tool.description,
            "parameters": parameters(tool.argument_schema),
        },
    })
}

pub(super) fn responses(tool: &ExportTool<'_>) -> Value {
    json!({
        "type": "function",
        "name": tool.exported_name,
        "description": tool.description,
        "parameters": parameters(tool.argument_schema),
        // Strict mode, the default here, forbids optional arguments.
        "strict": false,
    })
}
