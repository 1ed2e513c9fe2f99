//! Makes a pipeline from a description with GStreamer's own parser.
//!
//! The only way from text to a pipeline, so that validation and start agree. The pipeline stays in NULL state. Read
//! [`parse`].

use gst::prelude::*;

use crate::description::normalize;

/// Why a description is invalid.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ParseFailure {
    /// The parser's message.
    pub(crate) message: String,
    /// Elements that are not installed.
    pub(crate) missing: Vec<String>,
    /// The parser's error code.
    pub(crate) kind: Option<gst::ParseError>,
}

/// Makes a pipeline in NULL state. The text is normalized first (see [`normalize`]). Blocks.
///
/// # Errors
/// gst-launch-1.0 would call it an erroneous pipeline.
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
    // FATAL_ERRORS frees a partly made pipeline.
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
        // A single element is returned without a pipeline.
        Err(element) => {
            let pipeline = gst::Pipeline::new();
            match pipeline.add(&element) {
                Ok(()) => Ok(pipeline),
                Err(error) => Err(failure(error.to_string(), Vec::new(), None)),
            }
        }
    }
}
