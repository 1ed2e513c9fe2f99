//! Exports the tool list in the formats of model vendors.
//!
//! Owns the formats of the vendors' tool definitions. Pure, and independent of the registry: the caller selects the tools (and
//! leaves out those a model must not call, tools of effect `resume`). `tests/contract/vendor_types.rs` checks the result against the
//! vendors' own published types. Read [`export`] first, then `plain` for the schemas.

mod plain;
mod titles;
mod tool;
mod vendors;

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

pub use self::tool::ExportTool;

/// An export format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `openai`: `tools` of OpenAI's chat completions, which many local servers support too.
    OpenaiChat,
    /// `openai_responses`: `tools` of OpenAI's responses.
    OpenaiResponses,
    /// `anthropic`: `tools` of Anthropic's messages.
    Anthropic,
    /// `mcp`: `tools` of an MCP `tools/list` answer.
    Mcp,
    /// `hume`: `tools` of a Hume EVI session (`session_settings`); the parameters are JSON in a string.
    Hume,
    /// `json`: the five fields of `ovos.tools.list`, without titles.
    Json,
}

impl Format {
    /// Every format, sorted by name.
    pub const ALL: [Self; 6] = [
        Self::Anthropic,
        Self::Hume,
        Self::Json,
        Self::Mcp,
        Self::OpenaiChat,
        Self::OpenaiResponses,
    ];

    /// The name used on the bus and the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai",
            Self::OpenaiResponses => "openai_responses",
            Self::Anthropic => "anthropic",
            Self::Mcp => "mcp",
            Self::Hume => "hume",
            Self::Json => "json",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == text)
            .ok_or_else(|| UnknownFormat {
                given: text.chars().take(60).collect(),
            })
    }
}

/// An unknown format name; the message lists the known ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown export format '{given}', expected one of {}", Format::ALL.map(Format::name).join(", "))]
pub struct UnknownFormat {
    /// The requested name, cut to 60 characters.
    pub given: String,
}

/// Returns the tools as an array of definitions in a format, in the given order.
#[must_use]
pub fn export(format: Format, tools: &[ExportTool<'_>]) -> Value {
    let definition: fn(&ExportTool<'_>) -> Value = match format {
        Format::OpenaiChat => vendors::openai_chat,
        Format::OpenaiResponses => vendors::openai_responses,
        Format::Anthropic => vendors::anthropic,
        Format::Mcp => vendors::mcp,
        Format::Hume => vendors::hume,
        Format::Json => vendors::five_fields,
    };
    Value::Array(tools.iter().map(definition).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ovos_toolbox_wire::Effect;
    use serde_json::json;

    #[test]
    fn formats_are_found_by_name() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        let error = "yaml".parse::<Format>().unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown export format 'yaml', expected one of anthropic, hume, json, mcp, openai, openai_responses"
        );
    }

    #[test]
    fn shapes() {
        let (arguments, output) = (
            json!({"type": "object", "properties": {}}),
            json!({"type": "integer"}),
        );
        let tool = ExportTool {
            exported_name: "arm__wave",
            toolbox_id: "arm",
            name: "wave",
            description: "waves",
            argument_schema: &arguments,
            output_schema: &output,
            effect: Effect::Motion,
        };
        for (format, expected) in [
            (
                Format::OpenaiChat,
                json!({"type": "function", "function": {
                    "name": "arm__wave", "description": "waves", "parameters": arguments}}),
            ),
            (
                Format::OpenaiResponses,
                json!({"type": "function", "name": "arm__wave", "description": "waves", "parameters": arguments,
                    "strict": false}),
            ),
            (
                Format::Anthropic,
                json!({"name": "arm__wave", "description": "waves", "input_schema": arguments}),
            ),
            (
                Format::Mcp,
                json!({"name": "arm__wave", "title": "wave", "description": "waves", "inputSchema": arguments,
                    "annotations": {"readOnlyHint": false, "destructiveHint": true}}),
            ),
            (
                Format::Hume,
                json!({"type": "function", "name": "arm__wave", "description": "waves",
                    "parameters": "{\"type\":\"object\",\"properties\":{}}"}),
            ),
            (
                Format::Json,
                json!({"name": "arm__wave", "description": "waves", "argument_schema": arguments,
                    "output_schema": output, "toolbox_id": "arm"}),
            ),
        ] {
            assert_eq!(export(format, &[tool]), json!([expected]), "{format}");
        }
    }
    /// MCP clients ask their users about destructive tools, and a stop must not wait for that.
    #[test]
    fn hints_follow_from_the_effect() {
        let nothing = json!({});
        for effect in Effect::ALL {
            let tool = ExportTool {
                exported_name: "a",
                toolbox_id: "b",
                name: "a",
                description: "",
                argument_schema: &nothing,
                output_schema: &nothing,
                effect,
            };
            let hints = match effect {
                Effect::Read => json!({"readOnlyHint": true, "destructiveHint": false}),
                Effect::Write | Effect::Motion | Effect::Resume => {
                    json!({"readOnlyHint": false, "destructiveHint": true})
                }
                Effect::Safe | Effect::Stop => {
                    json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true})
                }
            };
            assert_eq!(
                export(Format::Mcp, &[tool])[0]["annotations"],
                hints,
                "{effect:?}"
            );
        }
    }
}
