//! Makes a checked pipeline from a description.
//!
//! Owns the order: find what is missing, check the text, parse it, check every element again. The pipeline is in NULL state. Read [`build`].

use gst::prelude::*;

use crate::description::Description;
use crate::parse::{ParseFailure, lacks, parse};
use crate::policy::{Policy, Refusal, Uses};

/// A checked pipeline, and what it uses.
pub(crate) struct Built {
    pub(crate) pipeline: gst::Pipeline,
    pub(crate) uses: Uses,
}

/// Why there is no pipeline.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum BuildError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Parse(#[from] ParseFailure),
    #[error("{what} is in use by the instance {owner}: stop that one first")]
    InUse { what: String, owner: String },
    #[error("{0}")]
    NotNow(String),
}

/// Makes a pipeline. Blocks: plugins may have to be loaded.
///
/// # Errors
/// The description is not allowed or invalid.
pub(crate) fn build(policy: &Policy, description: &str) -> Result<Built, BuildError> {
    let placed = policy.place(description);
    if let Some(failure) = lacks(&placed, &Description::read(&placed)) {
        return Err(failure.into());
    }
    policy.check_description(&placed)?;
    let pipeline = parse(&placed)?;
    let uses = policy.examine(pipeline.upcast_ref())?;
    Ok(Built { pipeline, uses })
}
