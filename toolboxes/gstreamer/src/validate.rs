//! Validation of descriptions.
//!
//! Makes the answer of `validate_pipeline`: the policy, the real parser, the static caps, and the warnings. The
//! pipeline stays in NULL state and is dropped. Opens no device, file or connection; problems that only running shows
//! are warnings. Read [`validate`].

mod address;
mod caps;
mod datagram;
mod failure;
mod graph;
mod open;
mod spare;
mod verdict;
mod warning;

use crate::description::Description;
use crate::holders::Holders;
use crate::machine::Machine;
use crate::parse::{lacks, parse};
use graph::Graph;
pub(crate) use spare::Spares;
pub(crate) use verdict::{Kind, Validation};

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
    if let Some(wrong) = address::wrong(&graph) {
        return failure::address(&wrong, text, &normalized);
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
