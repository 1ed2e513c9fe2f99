//! What is wrong with a schema, or with a value.

use std::fmt;

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

/// The largest number of problems in a refusal. More would not be read, and a hostile call could cause millions.
pub const MAX_PROBLEMS: usize = 16;
