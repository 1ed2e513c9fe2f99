//! Makes a checked pipeline from a description.
//!
//! Owns the order: find what is missing, check the text, parse it, check every element again. The pipeline is in NULL state. Read [`build`].

use gst::prelude::*;
use ovos_toolbox_sdk::prelude::ToolError;

use crate::description::Description;
use crate::parse::{lacks, parse};
use crate::policy::Policy;
use crate::uses::Uses;

/// A checked pipeline, and what it uses.
pub(super) struct Built {
    pub(super) pipeline: gst::Pipeline,
    pub(super) uses: Uses,
}

/// Makes a pipeline. Blocks: plugins may have to be loaded.
///
/// # Errors
/// The description is not allowed or invalid.
pub(super) fn build(policy: &Policy, description: &str) -> Result<Built, ToolError> {
    let wrong = |failure: &dyn std::fmt::Display| ToolError::new("PipelineError", failure);
    let placed = policy.place(description);
    if let Some(failure) = lacks(&placed, &Description::read(&placed)) {
        return Err(wrong(&failure));
    }
    policy
        .check_description(&placed)
        .map_err(|refusal| refusal.denial())?;
    let pipeline = parse(&placed).map_err(|failure| wrong(&failure))?;
    let uses = policy
        .examine(pipeline.upcast_ref())
        .map_err(|refusal| refusal.denial())?;
    Ok(Built { pipeline, uses })
}
