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
//! let read = |args: serde_json::Value| schema.read(args.as_object().unwrap(), Reading::native(Effect::Motion));
//! let accepted = read(json!({"angle": "45"})).unwrap();
//! assert_eq!(serde_json::Value::from(accepted.arguments), json!({"angle": 45, "slowly": true}));
//! let problems = read(json!({"angle": 120})).unwrap_err();
//! assert_eq!(problems[0].path, "angle");
//! # Ok::<(), ovos_tools_schema::SchemaError>(())
//! ```

mod argument;
mod bounds;
mod coerce;
mod compile;
mod defaults;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod meant;
mod name;
mod node;
mod output;
mod problem;
mod reading;
mod scalar;
mod secrets;
mod shape;
mod shorten;
mod tool;
mod tree;
mod unit;
mod validate;

pub use argument::{ArgumentSchema, ToolArguments};
pub use compile::resolve;
pub use name::python_type_name;
pub use output::OutputSchema;
pub use problem::{MAX_PROBLEMS, Problem, SchemaError};
pub use reading::{Reading, Unknown};
pub use shape::{allows_objects, check_shown};
pub use shorten::{shorten, shorten_text};
pub use tool::CompiledTool;
