//! The schemas of a tool's arguments and output, compiled once and used for every call.
//!
//! Owns every step from the arguments of a bus message to the arguments that a toolbox gets: lax coercion as in
//! pydantic, defaults, removal of undeclared arguments, validation, and the error texts. Pure: no IO, no clock, no
//! state. Read [`ArgumentSchema`] first.
//!
//! The work is bounded for any input of a client: nesting, the digits of a number and ambiguous recursion have limits
//! (`bounds`), patterns run on a linear-time engine, and everything else is linear in the size of the arguments.

mod bounds;
mod coerce;
mod compile;
mod defaults;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod name;
mod object;
mod scalar;
mod shape;
mod shorten;
mod tool;
mod tree;
mod validate;

use std::fmt;

use serde_json::{Map, Value};

use bounds::Bounds;
use coerce::Coercion;
use tree::Tree;
use validate::Checker;

pub use name::python_type_name;
pub use shorten::shorten;
pub use tool::CompiledTool;

/// Why a schema cannot be used; the text is for the author of the toolbox.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The schema is not a JSON object (or, for an output schema, a boolean).
    #[error("schema: expected a JSON object, got {found}")]
    NotAnObject {
        /// The shortened value.
        found: String,
    },
    /// The arguments are always an object, and the schema describes another type.
    #[error("schema at #/type: arguments are an object, so `type` must be \"object\", got {found}")]
    NotForArguments {
        /// The shortened `type`.
        found: String,
    },
    /// A keyword has a wrong value, a reference cannot be resolved, or a pattern cannot be compiled.
    #[error("schema at {path}: {message}")]
    Invalid {
        /// The place in the schema, as a URI fragment (`#/properties/speed/type`).
        path: String,
        /// The error at that place.
        message: String,
    },
    /// A `default` does not fit its own schema, so every call that relies on it would fail.
    #[error("schema at {path}: the default does not fit its own schema: {message}")]
    Default {
        /// The place in the schema, as a URI fragment.
        path: String,
        /// The problem of the default.
        message: String,
    },
}

/// One error in a call's arguments or a tool's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The argument, as `a`, `pose.x` or `points[3]`; empty for the arguments as a whole.
    pub path: String,
    /// The expected value and the given one, in lower case.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// The handling of undeclared arguments where `additionalProperties` is `false`. Elsewhere they are dropped, or kept
/// where the schema allows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// Undeclared arguments are dropped.
    Drop,
    /// Undeclared arguments are a problem.
    Refuse,
}

/// The compiled argument schema of one tool.
#[derive(Debug)]
pub struct ArgumentSchema {
    tree: Tree,
    checker: Checker,
    bounds: Bounds,
}

impl ArgumentSchema {
    /// Compiles a JSON Schema (draft 2020-12 unless `$schema` names another; `format` is not asserted).
    ///
    /// # Errors
    ///
    /// [`SchemaError`] when the value is not a schema or does not describe named arguments, when a reference cannot be
    /// resolved inside the document, when a pattern needs look-around or back references, and when a `default` does not
    /// fit.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let Value::Object(root) = schema else {
            return Err(SchemaError::NotAnObject {
                found: shorten(schema),
            });
        };
        if let Some(kind) = root.get("type")
            && !names_object(kind)
        {
            return Err(SchemaError::NotForArguments { found: shorten(kind) });
        }
        shape::check(schema)?;
        let checker = Checker::compile(schema)?;
        let tree = Tree::compile(schema);
        let bounds = Bounds::of(&tree);
        defaults::check(schema, &bounds)?;
        Ok(Self {
            tree,
            checker,
            bounds,
        })
    }

    /// Makes the toolbox's arguments from those of a call: coerced, with defaults, without undeclared arguments,
    /// validated.
    ///
    /// Undeclared arguments are dropped, but kept when `additionalProperties` is `true` or a schema; when it is
    /// `false`, `unknown` decides. The same holds for objects inside the arguments, except that one whose schema has no
    /// `properties` at all is free-form and keeps everything.
    ///
    /// # Errors
    ///
    /// At least one [`Problem`], at most [`MAX_PROBLEMS`].
    pub fn prepare(
        &self,
        args: &Map<String, Value>,
        unknown: Unknown,
    ) -> Result<Map<String, Value>, Vec<Problem>> {
        let words = self.bounds.survey_map(args).map_err(|problem| vec![problem])?;
        let coerced = Coercion::new(&self.tree, unknown).arguments(args)?;
        self.checker.check(&coerced, words)?;
        match coerced {
            Value::Object(map) => Ok(map),
            // The root node of an argument schema gives an object. If that ever breaks, the call fails and the service
            // goes on.
            other => Err(vec![Problem {
                path: String::new(),
                message: format!("expected an object of arguments, got {}", shorten(&other)),
            }]),
        }
    }
}

/// A compiled schema for validation without coercion: of a tool's output or a toolbox's configuration.
#[derive(Debug)]
pub struct OutputSchema {
    checker: Checker,
    bounds: Bounds,
}

impl OutputSchema {
    /// Compiles a JSON Schema (draft 2020-12 unless `$schema` names another; `format` is not asserted).
    ///
    /// # Errors
    ///
    /// [`SchemaError`] when the value is not a schema, a reference cannot be resolved, or a pattern cannot be compiled.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err(SchemaError::NotAnObject {
                found: shorten(schema),
            });
        }
        shape::check(schema)?;
        let checker = Checker::compile(schema)?;
        let bounds = Bounds::of(&Tree::compile(schema));
        Ok(Self { checker, bounds })
    }

    /// Validates an output or a configuration.
    ///
    /// # Errors
    ///
    /// At least one [`Problem`], at most [`MAX_PROBLEMS`].
    pub fn check(&self, output: &Value) -> Result<(), Vec<Problem>> {
        let words = self.bounds.survey(output).map_err(|problem| vec![problem])?;
        self.checker.check(output, words)
    }
}

/// The largest number of problems in a refusal. More would not be read, and a hostile call could cause millions.
pub const MAX_PROBLEMS: usize = 16;

fn names_object(kind: &Value) -> bool {
    match kind {
        Value::String(name) => name == "object",
        Value::Array(names) => names.iter().any(|name| name == "object"),
        // Not a valid `type`: the meta-schema refuses it with a better text.
        _ => true,
    }
}
