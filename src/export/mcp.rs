//! The format of MCP tools, as in the answer to `tools/list`.

use serde_json::{Value, json};

use super::ExportTool;
use super::parameters::{parameters, untitled};

pub(super) fn tool(tool: &ExportTool<'_>) -> Value {
    let mut definition = json!({ "name": tool.exported_name });
    if tool.exported_name != tool.name {
        definition["title"] = json!(tool.name);
    }
    definition["description"] = json!(tool.description);
    definition["inputSchema"] = parameters(tool.argument_schema);
    // Structured content is an object in every revision up to 2025-11-25, so other outputs are exported without a
    // schema.
    if tool.output_schema.get("type").and_then(Value::as_str) == Some("object") {
        definition["outputSchema"] = untitled(tool.output_schema);
    }
    definition["annotations"] = json!({
        "readOnlyHint": tool.read_only,
        "destructiveHint": tool.destructive,
    });
    definition
}
