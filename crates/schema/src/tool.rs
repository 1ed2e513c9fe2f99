//! One tool of a toolbox, with its schemas compiled.
//!
//! Made where a toolbox lists its tools, and used wherever they are shown or called: what has one can call it. Owns no
//! rule of its own. Read [`CompiledTool`].

use ovos_toolbox_wire::ToolDefinition;

use crate::{ArgumentSchema, OutputSchema};

/// A tool that can be called.
#[derive(Debug)]
pub struct CompiledTool {
    /// What the toolbox says of it.
    pub definition: ToolDefinition,
    /// Its argument schema.
    pub arguments: ArgumentSchema,
    /// Its output schema.
    pub output: OutputSchema,
}
