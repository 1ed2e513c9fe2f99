//! What a tool accepts and returns: schemas compiled once, used for every call.
//!
//! Owns the way from the arguments of a bus message to the arguments a toolbox sees: lax coercion as pydantic
//! does it, defaults, removal of undeclared arguments, validation, and the text that says what is wrong.
//! Pure: no IO, no clock, no state. Read [`ArgumentSchema`] first.
//!
//! Work is bounded for whatever a client sends: nesting, digits of a number and ambiguous recursion have limits
//! (`bounds`), patterns run on a linear-time engine, everything else is linear in the size of the arguments.

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
    /// Arguments are always named, the schema describes something else.
    #[error("schema at #/type: arguments are an object, so `type` must be \"object\", got {found}")]
    NotForArguments {
        /// The shortened `type`.
        found: String,
    },
    /// A keyword has a wrong value, a reference leads nowhere, a pattern cannot be compiled.
    #[error("schema at {path}: {message}")]
    Invalid {
        /// Where in the schema, as a URI fragment (`#/properties/speed/type`).
        path: String,
        /// What is wrong there.
        message: String,
    },
    /// A `default` that the schema beside it refuses would make every call that relies on it fail.
    #[error("schema at {path}: the default does not fit its own schema: {message}")]
    Default {
        /// Where in the schema.
        path: String,
        /// What is wrong with the default.
        message: String,
    },
}

/// One thing that is wrong with a call's arguments or a tool's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The argument, as `a`, `pose.x` or `points[3]`; empty for the arguments as a whole.
    pub path: String,
    /// What was expected and what was there, lower case.
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

/// What happens to arguments that are not declared where `additionalProperties` is `false`. Elsewhere they are dropped, or
/// kept where the schema says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// They are dropped there, too.
    Drop,
    /// They are a problem.
    Refuse,
}

/// The argument schema of one tool, compiled.
#[derive(Debug)]
pub struct ArgumentSchema {
    tree: Tree,
    checker: Checker,
    bounds: Bounds,
}

impl ArgumentSchema {
    /// Compiles a JSON Schema (draft 2020-12 unless `$schema` says otherwise; `format` is not asserted).
    ///
    /// # Errors
    ///
    /// [`SchemaError`] when the schema is not one, when it does not describe named arguments, when a reference
    /// leads nowhere or outside the document, when a pattern needs look-around or back references, and when a
    /// `default` does not fit.
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

    /// Turns the arguments of a call into what the toolbox gets: coerced, with defaults, without undeclared
    /// arguments, validated.
    ///
    /// Undeclared arguments are dropped, and kept when `additionalProperties` is `true` or a schema; when it is `false`,
    /// `unknown` decides. Objects inside the arguments are treated alike, except that one whose schema has no
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
            // The tree keeps objects objects; should that ever break, the call fails instead of the service.
            other => Err(vec![Problem {
                path: String::new(),
                message: format!("expected an object of arguments, got {}", shorten(&other)),
            }]),
        }
    }
}

/// A schema by which something is checked and never changed, compiled: the output of a tool, the configuration of a
/// toolbox.
#[derive(Debug)]
pub struct OutputSchema {
    checker: Checker,
    bounds: Bounds,
}

impl OutputSchema {
    /// Compiles a JSON Schema (draft 2020-12 unless `$schema` says otherwise; `format` is not asserted).
    ///
    /// # Errors
    ///
    /// [`SchemaError`] when the schema is not one, a reference leads nowhere, or a pattern cannot be used.
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

/// More problems than this are not listed: no person reads them, and a hostile call could make millions.
pub const MAX_PROBLEMS: usize = 16;

fn names_object(kind: &Value) -> bool {
    match kind {
        Value::String(name) => name == "object",
        Value::Array(names) => names.iter().any(|name| name == "object"),
        // Not a type at all: left to the meta-schema, which says so with more words.
        _ => true,
    }
}
