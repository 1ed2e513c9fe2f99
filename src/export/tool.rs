//! What an export says of a tool.

use ovos_toolbox_wire::Effect;
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
    /// What the tool may do.
    pub effect: Effect,
}
