//! What has to hold for any input from outside, as one function a parser; a panic is a finding.
//!
//! Built for tests and fuzzing only, and no part of the crate's interface. The libFuzzer targets in `fuzz/` feed these
//! functions for hours; the tests below feed them the stored corpus and mutations of it for a moment. Read [`TARGETS`].
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a finding panics; the names are those of the corpus's folders"
)]

mod arguments;
mod graph;
#[cfg(test)]
mod replay;

use crate::bus::{Envelope, Message};
use crate::plugin::{manifest, tools};
use crate::registry::Tool;
use crate::schema::Unknown;

/// Takes one input and panics when something does not hold.
pub type Body = fn(&[u8]);

/// The parsers, by the name of their corpus.
pub const TARGETS: &[(&str, Body)] = &[
    ("arguments", arguments::prepare),
    ("bus_frames", crate::bus::fuzz::frames),
    ("envelope", envelope),
    ("graph", graph::plan),
    ("host_frames", crate::plugin::fuzz::frames),
    ("manifest", manifest),
    ("tools", tools),
];

/// Feeds one input to one parser.
pub fn feed(target: &str, data: &[u8]) {
    let (_, body) = TARGETS
        .iter()
        .find(|(name, _)| *name == target)
        .expect("a target");
    body(data);
}

/// A frame of the bus: what can be read survives being written, and so does what is derived from it.
fn envelope(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    crate::bus::fuzz::gate(&text);
    let peeked = Envelope::kind_of(&text);
    let Ok(envelope) = Envelope::parse(&text) else {
        return;
    };
    assert!(peeked.is_some() && !envelope.kind.is_empty());
    let Ok(message) = envelope.message() else {
        // Only the data may be at fault; then there is a request to answer.
        assert!(envelope.head().is_ok() || envelope.context_map().is_err());
        return;
    };
    assert_eq!(Message::parse(&message.to_text()).unwrap(), message);
    let answer = message.response(message.data.clone());
    assert_eq!(Message::parse(&answer.to_text()).unwrap(), answer);
    assert_eq!(answer.session_id(), message.session_id());
}

/// A manifest: taken or refused with reasons, and what is taken can be written and is taken again.
fn manifest(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match manifest::read(&text) {
        Ok(manifest) => {
            let again = serde_json::to_string(&manifest).unwrap();
            assert_eq!(manifest::read(&again).as_ref(), Ok(&manifest));
        }
        Err(wrong) => assert!(!wrong.is_empty()),
    }
}

/// A list of tools: each is taken or left out with reasons, and those that were taken can be called.
fn tools(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(set) = tools::read(&text, true) else { return };
    assert!(set.dropped.iter().all(|tool| !tool.wrong.is_empty()));
    for tool in set.tools {
        _ = tool.arguments.prepare(&serde_json::Map::new(), Unknown::Refuse);
        _ = tool.output.check(&serde_json::Value::Null);
        assert!(Tool::new("fuzz", 1, tool).is_ok());
    }
}
