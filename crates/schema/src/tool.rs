//! One tool of a toolbox, with its schemas.
//!
//! The schemas are compiled on their first use: a compiled tool takes some 70 KB, and a service with a hundred tools
//! calls a few of them. Read [`CompiledTool`].

use std::sync::OnceLock;

use ovos_toolbox_wire::ToolDefinition;
use serde_json::{Map, Value};

use crate::bounds;
use crate::{ArgumentSchema, OutputSchema, Problem, SchemaError, Unknown};

/// A tool that can be called.
#[derive(Debug)]
pub struct CompiledTool {
    /// The toolbox's definition of the tool.
    pub definition: ToolDefinition,
    arguments: OnceLock<Result<ArgumentSchema, SchemaError>>,
    output: OnceLock<Result<OutputSchema, SchemaError>>,
}

impl CompiledTool {
    /// A tool of this definition. With a schema that does not compile, every call fails, so check it before.
    #[must_use]
    pub fn new(definition: ToolDefinition) -> Self {
        Self {
            definition,
            arguments: OnceLock::new(),
            output: OnceLock::new(),
        }
    }

    /// Makes the toolbox's arguments from those of a call, like [`ArgumentSchema::prepare`]. Arguments for a toolbox
    /// that validates them itself are not changed; only the limits of nesting and of numbers apply.
    ///
    /// # Errors
    /// See [`ArgumentSchema::prepare`].
    pub fn prepare(
        &self,
        args: &Map<String, Value>,
        unknown: Unknown,
    ) -> Result<Map<String, Value>, Vec<Problem>> {
        if self.definition.validates {
            return match bounds::survey(args) {
                Ok(()) => Ok(args.clone()),
                Err(problem) => Err(vec![problem]),
            };
        }
        let compile = || ArgumentSchema::compile(&self.definition.argument_schema);
        let schema = self.arguments.get_or_init(compile).as_ref();
        schema.map_err(broken)?.prepare(args, unknown)
    }

    /// Validates an output, like [`OutputSchema::check`]. The output of a toolbox that validates it itself is accepted
    /// as it is.
    ///
    /// # Errors
    /// See [`OutputSchema::check`].
    pub fn check(&self, output: &Value) -> Result<(), Vec<Problem>> {
        if self.definition.validates {
            return Ok(());
        }
        let compile = || OutputSchema::compile(&self.definition.output_schema);
        let schema = self.output.get_or_init(compile).as_ref();
        schema.map_err(broken)?.check(output)
    }
}

fn broken(error: &SchemaError) -> Vec<Problem> {
    vec![Problem {
        path: String::new(),
        message: error.to_string(),
    }]
}
