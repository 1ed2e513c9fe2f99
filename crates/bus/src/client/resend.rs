//! Builds the frame that is sent when an answer may not have arrived: the answer with a mark, or an error in its place.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tungstenite::Utf8Bytes;

use super::delivery::{MAX_WRITES, UnprovenAnswer};
use super::handler::BusHandler;
use crate::envelope::Envelope;
use crate::message::OWN_KEY;

/// Returns the frame to write for an answer that was lost `answer.writes` times, or none if the answer is given up.
/// No frame is longer than `longest` bytes: the bus would close the connection.
pub(super) fn next(
    answer: UnprovenAnswer,
    handler: &dyn BusHandler,
    longest: usize,
) -> Option<UnprovenAnswer> {
    let fits = |text: &String| text.len() <= longest;
    let writes = answer.writes;
    let most = if answer.is_error {
        2 * MAX_WRITES
    } else {
        MAX_WRITES
    };
    if writes < most
        && let Some(text) = marked(&answer.text, writes).filter(fits)
    {
        return Some(UnprovenAnswer {
            text: text.into(),
            ..answer
        });
    }
    if answer.is_error {
        tracing::error!(
            frame = start(&answer.text),
            writes,
            "dropped an answer: the bus was lost each time it was sent"
        );
        return None;
    }
    let reason = format!("the bus was lost {writes} times while the answer was sent");
    let error = handler.instead(&answer.text, &reason);
    let error = error.and_then(|error| marked(&error, writes)).filter(fits);
    tracing::error!(
        frame = start(&answer.text),
        reason,
        sent = error.is_some(),
        "replaced an answer with an error"
    );
    Some(UnprovenAnswer {
        text: error?.into(),
        writes,
        is_error: true,
    })
}

/// Adds `ovos_tools: {"call_id", "resent"}` to the context of a message and leaves its data byte for byte as it was.
/// The call_id is present if the data has one.
fn marked(text: &str, resent: u8) -> Option<String> {
    #[derive(Deserialize)]
    struct OfCall {
        call_id: String,
    }
    #[derive(Serialize)]
    struct Frame<'a> {
        r#type: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a RawValue>,
        context: Map<String, Value>,
    }
    let envelope = Envelope::parse(text).ok()?;
    let mut context = envelope.context_map().ok()?;
    let mut mark = json!({ "resent": resent });
    if let Some(data) = envelope.data
        && let Ok(OfCall { call_id }) = serde_json::from_str(data.get())
    {
        mark = json!({ "call_id": call_id, "resent": resent });
    }
    context.insert(OWN_KEY.to_owned(), mark);
    let frame = Frame {
        r#type: &envelope.kind,
        data: envelope.data,
        context,
    };
    serde_json::to_string(&frame).ok()
}

/// Returns up to the first 200 bytes of a frame, to identify it in the log.
fn start(text: &Utf8Bytes) -> &str {
    let text = text.as_str();
    &text[..text.floor_char_boundary(200)]
}
