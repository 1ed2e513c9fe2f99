//! What is known about a description, as `validate_pipeline` says it. Read [`Validation`].

use ovos_toolbox_sdk::prelude::*;

/// What is known about a description.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Validation {
    /// Whether it can be started.
    pub(crate) valid: bool,
    /// The elements, in order; those that caps between two `!` stand for are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) elements: Option<Vec<String>>,
    /// What will probably not work as meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warnings: Option<Vec<String>>,
    /// The same, with what they are about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warning_details: Vec<Warning>,
    /// Why it cannot be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// What kind of error it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_kind: Option<Kind>,
    /// Where the error stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) position: Option<Position>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) suggestion: Option<String>,
}

/// Why a pipeline cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The text is none.
    Syntax,
    /// An element is not installed.
    NoElement,
    /// An element has no such property.
    NoProperty,
    /// A property cannot have this value.
    BadValue,
    /// Two elements cannot be linked.
    Link,
    /// An element is not linked to another one, and has to be.
    Unlinked,
    /// Two elements are linked and can never agree on what passes.
    Caps,
    /// The configuration does not allow it.
    Policy,
    /// Another reason of the parser's.
    Other,
}

/// A place in the description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Position {
    /// Characters before it.
    pub(crate) offset: usize,
    /// What stands there.
    pub(crate) near: String,
}

/// What will probably not work as meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Warning {
    /// `open_end`, `no_queue_after_tee`, `no_caller`, `unit`, `no_parser`, `blocked_live_source`, `no_raw_caps`,
    /// `unaligned_datagrams`, `out_of_range`, `deprecated`, `missing_file`, `not_a_file`, `other_format`, `missing_device`,
    /// `device_in_use` or `unknown_peer`.
    pub(crate) kind: &'static str,
    /// The element it is about, as it is called in the pipeline.
    pub(crate) element: String,
    /// What is wrong, and what to do.
    pub(crate) message: String,
}
