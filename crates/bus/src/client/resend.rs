//! Builds the frame that is sent when an answer may not have arrived: the answer with a mark, or an error in its place.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tungstenite::Utf8Bytes;

use super::delivery::{MAX_WRITES, UnprovenAnswer};
use super::handler::BusHandler;
use crate::envelope::Envelope;
use crate::message::OWN_KEY;

/// Returns the frame to write for an answer that was lost `answer.writes` times, or none if the answer is given up. A frame longer
/// than `longest` bytes is never returned, because the bus would close the connection.
pub(super) fn next(
    answer: UnprovenAnswer,
    handler: &dyn BusHandler,
    longest: usize,
) -> Option<UnprovenAnswer> {
    let writes = answer.writes;
    let most = if answer.is_error {
        2 * MAX_WRITES
    } else {
        MAX_WRITES
    };
    let times = match writes {
        1 => "once".to_owned(),
        _ => format!("{writes} times"),
    };
    let lost = format!("the bus was lost {times} while the answer was sent");
    let reason = match marked(&answer.text, writes) {
        _ if writes >= most => lost,
        Some(text) if text.len() <= longest => {
            return Some(UnprovenAnswer {
                text: text.into(),
                ..answer
            });
        }
        Some(text) => format!(
            "{lost}, and the answer is too long to be sent again: it has {} bytes with the mark for that, and the bus takes \
             at most {longest}",
            text.len()
        ),
        None => format!("{lost}, and it cannot be marked as sent again"),
    };
    let frame = start(&answer.text);
    if answer.is_error {
        tracing::error!(frame, reason, "dropped an error that replaced an answer");
        return None;
    }
    let error = handler.instead(&answer.text, &reason);
    let error = error.and_then(|error| marked(&error, writes));
    let Some(error) = error.filter(|error| error.len() <= longest) else {
        tracing::error!(frame, reason, "dropped an answer, with no error in its place");
        return None;
    };
    tracing::error!(frame, reason, "replaced an answer with an error");
    Some(UnprovenAnswer {
        text: error.into(),
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
    let call = envelope
        .data
        .and_then(|data| serde_json::from_str::<OfCall>(data.get()).ok());
    let mark = match call {
        Some(OfCall { call_id }) => json!({ "call_id": call_id, "resent": resent }),
        None => json!({ "resent": resent }),
    };
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
