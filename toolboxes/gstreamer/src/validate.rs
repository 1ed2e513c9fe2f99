//! Validation of descriptions.
//!
//! Makes the answer of `validate_pipeline`: the policy, the real parser, the static caps, and the warnings. The
//! pipeline stays in NULL state and is dropped. Opens no device, file or connection; problems that only running shows
//! are warnings. Read [`validate`].

mod caps;
mod datagram;
mod failure;
mod graph;
mod open;
mod spare;
mod warning;

use ovos_toolbox_sdk::prelude::*;

use crate::description::Description;
use crate::holders::Holders;
use crate::machine::Machine;
use crate::parse::{lacks, parse};
use graph::Graph;
pub(crate) use spare::Spares;

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
    /// `unaligned_datagrams`, `out_of_range`, `deprecated`, `missing_file`, `missing_device`, `device_in_use` or
    /// `unknown_peer`.
    pub(crate) kind: &'static str,
    /// The element it is about, as it is called in the pipeline.
    pub(crate) element: String,
    /// What is wrong, and what to do.
    pub(crate) message: String,
}

/// Checks a description. Blocks for milliseconds, or seconds if plugins have to be loaded or a package is looked up.
pub(crate) fn validate(machine: &Machine, text: &str, holders: &Holders) -> Validation {
    let normalized = machine.policy.place(text);
    let description = Description::read(&normalized);
    let refused = |refusal| failure::refused(&refusal, text, &normalized, &description);
    let wrong = |error: &_| failure::parser(error, text, &normalized, &description, &machine.suggestions);
    if let Some(error) = lacks(&normalized, &description) {
        return wrong(&error);
    }
    if let Err(refusal) = machine.policy.check_description(&normalized) {
        return refused(refusal);
    }
    let pipeline = match parse(&normalized) {
        Ok(pipeline) => pipeline,
        Err(error) => return wrong(&error),
    };
    if let Err(refusal) = machine
        .policy
        .check_element(gst::prelude::Cast::upcast_ref(&pipeline))
    {
        return refused(refusal);
    }
    let graph = Graph::of(&pipeline, &description);
    if let Some(never) = caps::never(&graph) {
        return failure::caps(&never, text, &normalized, &graph);
    }
    let ends = open::ends(&graph);
    if let Some(end) = ends.iter().find(|end| !end.runs) {
        return failure::open_end(end, text, &normalized);
    }
    let mut warning_details = warning::all(&graph, machine, holders);
    warning_details.extend(ends.iter().map(warning::open_end));
    machine.spares.keep(&graph.elements);
    Validation {
        valid: true,
        elements: Some(graph.factories()),
        warnings: Some(
            warning_details
                .iter()
                .map(|warning| warning.message.clone())
                .collect(),
        ),
        warning_details,
        ..Validation::default()
    }
}
