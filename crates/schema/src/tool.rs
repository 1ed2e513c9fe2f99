//! One tool of a toolbox, with its schemas compiled.
//!
//! Made when a toolbox lists its tools, and used where they are shown or called. Read [`CompiledTool`].

use ovos_toolbox_wire::ToolDefinition;

use crate::{ArgumentSchema, OutputSchema};

/// A tool that can be called.
#[derive(Debug)]
pub struct CompiledTool {
    /// The toolbox's definition of the tool.
    pub definition: ToolDefinition,
    /// The compiled argument schema.
    pub arguments: ArgumentSchema,
    /// The compiled output schema.
    pub output: OutputSchema,
}
