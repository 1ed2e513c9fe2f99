//! What an export says of a tool.

use serde_json::Value;

/// The properties of a tool that an export uses.
#[derive(Debug, Clone, Copy)]
pub struct ExportTool<'a> {
    /// The name given to the model; the model calls the tool by it.
    pub exported_name: &'a str,
    /// The toolbox that owns the tool.
    pub toolbox_id: &'a str,
    /// The name inside its toolbox.
    pub name: &'a str,
    /// What the tool does.
    pub description: &'a str,
    /// JSON Schema of the arguments.
    pub argument_schema: &'a Value,
    /// JSON Schema of the output.
    pub output_schema: &'a Value,
    /// Whether the tool changes nothing (effect `read`).
    pub read_only: bool,
    /// Whether the effect of the tool cannot simply be undone (effect `motion`, `safe` and `stop`, and `write` unless
    /// the toolbox declares otherwise).
    pub destructive: bool,
}
