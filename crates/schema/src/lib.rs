//! The schemas of a tool's arguments and output, compiled once and used for every call.
//!
//! Owns every step from the arguments of a bus message to the arguments that a toolbox gets: lax coercion as in
//! pydantic, the forms that models write, defaults, undeclared arguments, validation, and the error texts. Pure: no IO,
//! no clock, no state. Read [`ArgumentSchema`] first, then [`Reading`].
//!
//! The work is bounded for any input of a client: nesting, the digits of a number and ambiguous recursion have limits
//! (`bounds`), patterns run on a linear-time engine, and everything else is linear in the size of the arguments.
//!
//! ```
//! use ovos_tools_schema::{ArgumentSchema, Reading};
//! use ovos_toolbox_wire::Effect;
//! use serde_json::json;
//!
//! let schema = ArgumentSchema::compile(&json!({
//!     "type": "object",
//!     "properties": {"angle": {"type": "integer", "maximum": 90}, "slowly": {"type": "boolean", "default": true}},
//!     "required": ["angle"],
//! }))?;
//! let read = |given: serde_json::Value| schema.read(given.as_object().unwrap(), Reading::native(Effect::Motion));
//! let read_back = read(json!({"angle": "45"})).unwrap();
//! assert_eq!(serde_json::Value::from(read_back.arguments), json!({"angle": 45, "slowly": true}));
//! let problems = read(json!({"angle": 120})).unwrap_err();
//! assert_eq!(problems[0].path, "angle");
//! # Ok::<(), ovos_tools_schema::SchemaError>(())
//! ```

mod bounds;
mod coerce;
mod compile;
mod defaults;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod name;
mod nearest;
mod node;
mod problem;
mod reading;
mod scalar;
mod shape;
mod shorten;
mod tool;
mod tree;
mod unit;
mod validate;

use serde_json::{Map, Value};

use bounds::Bounds;
use coerce::{CoercedArguments, Coercion};
use tree::Tree;
use validate::Checker;

pub use compile::resolve;
pub use name::python_type_name;
pub use nearest::nearest;
pub use problem::{MAX_PROBLEMS, Problem, SchemaError};
pub use reading::{Reading, Unknown};
pub use shorten::{shorten, shorten_text};
pub use tool::CompiledTool;

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
        if let Some(kind) = root.get("type").filter(|_| !allows_objects(schema)) {
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
    /// Undeclared arguments are kept when `additionalProperties` is `true` or a schema; otherwise `reading` decides. The
    /// same holds for objects inside the arguments, except that one whose schema has no `properties` at all is free-form
    /// and keeps everything.
    ///
    /// # Errors
    ///
    /// At least one [`Problem`], at most [`MAX_PROBLEMS`] and one more.
    pub fn read(&self, args: &Map<String, Value>, reading: Reading) -> Result<ToolArguments, Vec<Problem>> {
        let mut words = self.bounds.survey_map(args).map_err(|problem| vec![problem])?;
        let CoercedArguments {
            value,
            ignored,
            read_text,
        } = Coercion::new(&self.tree, reading).arguments(args)?;
        if read_text {
            words = self.bounds.survey(&value).map_err(|problem| vec![problem])?;
        }
        self.checker.check(&value, words)?;
        match value {
            Value::Object(arguments) => Ok(ToolArguments { arguments, ignored }),
            // The root node of an argument schema gives an object. If that ever breaks, the call fails and the service
            // goes on.
            other => Err(vec![Problem {
                path: String::new(),
                message: format!("expected an object of arguments, got {}", shorten(&other)),
            }]),
        }
    }

    /// Reads arguments to the letter, like [`ArgumentSchema::read`] with [`Reading::Letter`].
    ///
    /// # Errors
    ///
    /// As [`ArgumentSchema::read`].
    pub fn prepare(
        &self,
        args: &Map<String, Value>,
        unknown: Unknown,
    ) -> Result<Map<String, Value>, Vec<Problem>> {
        self.read(args, Reading::Letter(unknown))
            .map(|prepared| prepared.arguments)
    }
}

/// The arguments of a call that can run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolArguments {
    /// The arguments for the toolbox.
    pub arguments: Map<String, Value>,
    /// The given arguments that the toolbox does not get, as paths; at most 64 are named.
    pub ignored: Vec<String>,
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

/// Checks a schema that is only shown and not used for validation: it has to describe an object, and its recursion has
/// to end.
///
/// # Errors
///
/// [`SchemaError`] otherwise.
pub fn check_shown(schema: &Value) -> Result<(), SchemaError> {
    if !schema.is_object() {
        return Err(SchemaError::NotAnObject {
            found: shorten(schema),
        });
    }
    if let Some(kind) = schema.get("type").filter(|_| !allows_objects(schema)) {
        return Err(SchemaError::NotForArguments { found: shorten(kind) });
    }
    shape::check(schema)
}

/// Whether the root of a schema allows objects: its type is `object`, or is not stated (`$ref`, `allOf`).
#[must_use]
pub fn allows_objects(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        // The meta-schema refuses an invalid `type`, with a better text.
        _ => true,
    }
}
