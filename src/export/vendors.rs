//! The vendors' definitions of a tool.

use ovos_toolbox_wire::Effect;
use serde_json::{Value, json};

use super::plain::plain;
use super::titles::untitled;
use super::tool::ExportTool;

/// Anthropic's format of custom tools.
pub(super) fn anthropic(tool: &ExportTool<'_>) -> Value {
    json!({
        "name": tool.exported_name,
        "description": tool.description,
        "input_schema": plain(tool.argument_schema),
    })
}

/// Hume EVI's format of function tools, for `session_settings` and the tools API. Omits `fallback_content`: the configuration of
/// the voice has the text to say when a tool fails.
pub(super) fn hume(tool: &ExportTool<'_>) -> Value {
    json!({
        "type": "function",
        "name": tool.exported_name,
        "description": tool.description,
        "parameters": plain(tool.argument_schema).to_string(),
    })
}

/// The format of MCP tools, as in the answer to `tools/list`.
pub(super) fn mcp(tool: &ExportTool<'_>) -> Value {
    let mut definition = json!({ "name": tool.exported_name });
    if tool.exported_name != tool.name {
        definition["title"] = json!(tool.name);
    }
    definition["description"] = json!(tool.description);
    definition["inputSchema"] = plain(tool.argument_schema);
    // Structured content is an object in every revision up to 2025-11-25, so other outputs are exported without a
    // schema.
    if tool.output_schema.get("type").and_then(Value::as_str) == Some("object") {
        definition["outputSchema"] = untitled(tool.output_schema);
    }
    definition["annotations"] = json!({
        "readOnlyHint": tool.effect == Effect::Read,
        "destructiveHint": tool.effect.is_destructive(),
    });
    if matches!(tool.effect, Effect::Safe | Effect::Stop) {
        definition["annotations"]["idempotentHint"] = json!(true);
    }
    definition
}

/// OpenAI's format of function tools in chat completions.
pub(super) fn openai_chat(tool: &ExportTool<'_>) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.exported_name,
            "description": tool.description,
            "parameters": plain(tool.argument_schema),
        },
    })
}

/// OpenAI's format of function tools in responses.
pub(super) fn openai_responses(tool: &ExportTool<'_>) -> Value {
    json!({
        "type": "function",
        "name": tool.exported_name,
        "description": tool.description,
        "parameters": plain(tool.argument_schema),
        // Strict mode, the default here, forbids optional arguments.
        "strict": false,
    })
}

/// The five fields of `ovos.tools.list`, without titles.
pub(super) fn five_fields(tool: &ExportTool<'_>) -> Value {
    json!({
        "name": tool.exported_name,
        "description": tool.description,
        "argument_schema": untitled(tool.argument_schema),
        "output_schema": untitled(tool.output_schema),
        "toolbox_id": tool.toolbox_id,
    })
}
