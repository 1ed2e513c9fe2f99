//! Making a pipeline of a description, with GStreamer's own parser.
//!
//! Owns the one way by which texts become pipelines, so that what was validated is what is started. What it makes is in
//! NULL state and stays there. Read [`parse`].

use gst::prelude::*;

use crate::description::normalize;

/// Why a description is none.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ParseFailure {
    /// What the parser said.
    pub(crate) message: String,
    /// Elements that are not installed.
    pub(crate) missing: Vec<String>,
    /// The parser's own kind of failure.
    pub(crate) kind: Option<gst::ParseError>,
}

/// Makes a pipeline, in NULL state. The text is normalized first (see [`normalize`]). Blocks.
///
/// # Errors
/// What gst-launch-1.0 would call an erroneous pipeline, too.
pub(crate) fn parse(description: &str) -> Result<gst::Pipeline, ParseFailure> {
    let text = normalize(description);
    let failure = |message: String, missing, kind| ParseFailure {
        message,
        missing,
        kind,
    };
    if text.contains('\0') {
        return Err(failure(
            "syntax error: a NUL character".to_owned(),
            Vec::new(),
            None,
        ));
    }
    let mut context = gst::ParseContext::new();
    // With FATAL_ERRORS nothing is left over from a pipeline that was made in part.
    let made = gst::parse::launch_full(&text, Some(&mut context), gst::ParseFlags::FATAL_ERRORS);
    let element = made.map_err(|error| {
        failure(
            error.message().to_owned(),
            context.missing_elements(),
            error.kind::<gst::ParseError>(),
        )
    })?;
    match element.downcast::<gst::Pipeline>() {
        Ok(pipeline) => Ok(pipeline),
        // A single element comes alone.
        Err(element) => {
            let pipeline = gst::Pipeline::new();
            match pipeline.add(&element) {
                Ok(()) => Ok(pipeline),
                Err(error) => Err(failure(error.to_string(), Vec::new(), None)),
            }
        }
    }
}
