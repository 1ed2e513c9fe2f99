//! Makes a pipeline from a description with GStreamer's own parser.
//!
//! The only way from text to a pipeline, so that validation and start agree. The pipeline stays in NULL state. Read
//! [`parse`].

use gst::prelude::*;

use crate::description::{Description, ElementText, normalize};

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
    /// What to do, where that is known already.
    pub(crate) advice: Option<Advice>,
}

/// What to do about a place of a description.
#[derive(Clone, Debug)]
pub(crate) struct Advice {
    /// In bytes.
    pub(crate) at: usize,
    pub(crate) text: String,
}

/// A path that a blank cuts in two. The parser would take its end for an element or a file of its own.
fn cut_path(text: &str, description: &Description) -> Option<ParseFailure> {
    let names: Vec<&str> = (0..description.elements.len())
        .filter_map(|index| description.given_name(index))
        .collect();
    let belongs = |word: &str| {
        let name = word.split('.').next().unwrap_or_default();
        let refers = word.contains('.') && names.contains(&name);
        let stands = word.contains(['=', '!', '(', ')', '"', '\'']) || word.contains("://");
        let caps = word.contains('/') && word.contains(',');
        refers || stands || caps || word.ends_with('.') || gst::ElementFactory::find(word).is_some()
    };
    let all = description.elements.iter();
    let mut all = all.flat_map(|element| element.properties.iter().map(move |property| (element, property)));
    all.find_map(|(element, property)| {
        let written = &text[property.value_at..];
        let is_path = written.starts_with(['/', '~']) || property.name.ends_with("location");
        if !is_path || written.starts_with('"') || property.value.contains("://") {
            return None;
        }
        let rest = &written[end_of_word(written)..];
        let words: Vec<&str> = rest
            .split_whitespace()
            .take_while(|word| !belongs(word))
            .collect();
        // A single plain word may be a misspelt element behind a missing `!`, but nothing follows a sink.
        let last = rest.split_whitespace().count() == words.len() && element.factory.contains("sink");
        let is_end = words.iter().any(|word| word.contains(['/', '.'])) || (last && !words.is_empty());
        is_end.then(|| ParseFailure {
            message: format!("the path {:?} ends at a blank", property.value),
            missing: Vec::new(),
            kind: Some(gst::ParseError::Syntax),
            advice: Some(Advice {
                at: property.at,
                text: format!(
                    "quote the path: {}=\"{} {}\"",
                    property.name,
                    property.value,
                    words.join(" ")
                ),
            }),
        })
    })
}

/// The length of the word at the start of a text, in which a backslash keeps a blank.
fn end_of_word(text: &str) -> usize {
    let mut escaped = false;
    let end = text.find(|letter: char| {
        let ends = letter.is_whitespace() && !escaped;
        escaped = letter == '\\' && !escaped;
        ends
    });
    end.unwrap_or(text.len())
}

/// What a description lacks, which comes before what it may not do: a quote, or an element that is not installed.
pub(crate) fn lacks(text: &str, description: &Description) -> Option<ParseFailure> {
    cut_path(text, description).or_else(|| missing(description))
}

fn missing(description: &Description) -> Option<ParseFailure> {
    let lacks =
        |element: &&ElementText| !element.is_address && gst::ElementFactory::find(&element.factory).is_none();
    // The parser reports a wrong syntax.
    let name = &description
        .elements
        .iter()
        .find(lacks)
        .filter(|_| description.problem.is_none())?
        .factory;
    Some(ParseFailure {
        message: format!("no element \"{name}\""),
        missing: vec![name.clone()],
        kind: Some(gst::ParseError::NoSuchElement),
        advice: None,
    })
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
        advice: None,
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
    let parsed = gst::parse::launch_full(&text, Some(&mut context), gst::ParseFlags::FATAL_ERRORS);
    let element = parsed.map_err(|error| {
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
