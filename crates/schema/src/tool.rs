//! One tool of a toolbox, with its schemas.
//!
//! The schemas are compiled on their first use: a compiled tool takes some 70 KB, and a service with a hundred tools
//! calls a few of them. Read [`CompiledTool`].

use std::collections::BTreeSet;
use std::sync::OnceLock;

use ovos_toolbox_wire::{Effect, ToolDefinition};
use serde_json::{Map, Value};

use crate::bounds;
use crate::secrets::secrets;
use crate::{ArgumentSchema, OutputSchema, Problem, Reading, SchemaError, ToolArguments, Unknown};

/// A tool that can be called.
#[derive(Debug)]
pub struct CompiledTool {
    /// The toolbox's definition of the tool.
    pub definition: ToolDefinition,
    arguments: OnceLock<Result<ArgumentSchema, SchemaError>>,
    output: OnceLock<Result<OutputSchema, SchemaError>>,
    secrets: OnceLock<BTreeSet<String>>,
}

impl CompiledTool {
    /// A tool of this definition. With a schema that does not compile, every call fails, so check it before.
    #[must_use]
    pub fn new(definition: ToolDefinition) -> Self {
        Self {
            definition,
            arguments: OnceLock::new(),
            output: OnceLock::new(),
            secrets: OnceLock::new(),
        }
    }

    /// The names of the arguments, at any depth, that the schema declares as `writeOnly`: no record shows them.
    #[must_use]
    pub fn secrets(&self) -> &BTreeSet<String> {
        self.secrets
            .get_or_init(|| secrets(&self.definition.argument_schema))
    }

    /// Whether the tool was written for this service, so that its arguments are read as [`Reading::Native`].
    #[must_use]
    pub fn is_native(&self) -> bool {
        !self.definition.validates && !self.definition.foreign
    }

    /// Makes the toolbox's arguments from those of a call, like [`ArgumentSchema::read`]: in the manner of a native tool, or
    /// to the letter for a foreign one. Arguments for a toolbox that validates them itself are not changed; only the
    /// limits of nesting and of numbers apply. `null_is_absent` is that of [`Reading::Native`].
    ///
    /// # Errors
    /// See [`ArgumentSchema::read`].
    pub fn prepare(
        &self,
        args: &Map<String, Value>,
        null_is_absent: bool,
    ) -> Result<ToolArguments, Vec<Problem>> {
        if self.definition.validates {
            bounds::survey(args).map_err(|problem| vec![problem])?;
            return Ok(ToolArguments {
                arguments: args.clone(),
                ignored: Vec::new(),
            });
        }
        let effect = self.definition.effect;
        let reading = match (self.definition.foreign, effect) {
            (false, _) => Reading::Native {
                effect,
                null_is_absent,
            },
            (true, Effect::Read | Effect::Write | Effect::Motion) => Reading::Letter(Unknown::Refuse),
            // An unknown argument is no reason to refuse a landing.
            (true, Effect::Safe | Effect::Stop | Effect::Resume) => Reading::Letter(Unknown::Drop),
        };
        let compile = || ArgumentSchema::compile(&self.definition.argument_schema);
        let schema = self.arguments.get_or_init(compile).as_ref();
        schema.map_err(broken)?.read(args, reading)
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
