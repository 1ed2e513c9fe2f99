//! From a description to a pipeline that may run.
//!
//! Owns the order: the text is checked, parsed, and every element checked again. What comes out is in NULL state. Read
//! [`build`].

use gst::prelude::*;

use crate::parse::{ParseFailure, parse};
use crate::policy::{Policy, Refusal, Uses};

/// A pipeline that may run, and what it uses.
pub(crate) struct Built {
    pub(crate) pipeline: gst::Pipeline,
    pub(crate) uses: Uses,
}

/// Why there is none.
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
/// It is not allowed, or not a pipeline.
pub(crate) fn build(policy: &Policy, description: &str) -> Result<Built, BuildError> {
    policy.check_description(description)?;
    let pipeline = parse(description)?;
    let uses = policy.examine(pipeline.upcast_ref())?;
    Ok(Built { pipeline, uses })
}
