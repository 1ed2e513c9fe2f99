//! A call that was answered, as `service.log_calls` writes it down.

use serde::Serialize;
use serde_json::Value;

use super::Request;

/// The longest record with all its parts, in bytes of memory. Records wait in a queue; without a bound a few calls with
/// large arguments would fill the memory.
const LONGEST: usize = 256 << 10;

/// What is counted for a value beside its text.
const VALUE: usize = 32;

/// One line of the file.
#[derive(Debug, Serialize)]
pub struct CallRecord {
    /// How the call was asked for.
    pub topic: String,
    /// `context.source` of the request.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub source: Value,
    /// The session that asked, when it named itself.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub session_id: Value,
    /// The request's data: name, arguments, call_id.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub request: Value,
    /// What the tool returned.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub result: Value,
    /// Why there is no result.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub error: Value,
    /// Milliseconds from the receipt of the request until its answer was with the bus client.
    pub elapsed_ms: u64,
    /// Parts that are left out because the record would be longer than 256 KiB with them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<&'static str>,
}

impl CallRecord {
    /// Of a call and its outcome.
    pub(super) fn new(request: Request, result: Option<Value>, error: Option<String>) -> Self {
        let text = |text: Option<&str>| text.map_or(Value::Null, Value::from);
        let context = &request.head.context;
        let mut record = Self {
            source: context.get("source").cloned().unwrap_or_default(),
            session_id: text(request.head.session_id()),
            request: Value::Object(request.data),
            result: result.unwrap_or_default(),
            error: error.map_or(Value::Null, Value::from),
            elapsed_ms: u64::try_from(request.received.elapsed().as_millis()).unwrap_or(u64::MAX),
            topic: request.head.kind,
            left_out: Vec::new(),
        };
        let mut room = LONGEST;
        // The short ones first, so that they stay.
        for (name, part) in [
            ("source", &mut record.source),
            ("session_id", &mut record.session_id),
            ("error", &mut record.error),
            ("request", &mut record.request),
            ("result", &mut record.result),
        ] {
            let before = room;
            if !fits(part, &mut room) {
                (*part, room) = (Value::Null, before);
                record.left_out.push(name);
            }
        }
        record
    }
}

/// Takes the size of a value off the room; stops looking when there is none left.
fn fits(value: &Value, room: &mut usize) -> bool {
    let own = match value {
        Value::String(text) => text.len(),
        Value::Number(number) => number.as_str().len(),
        _ => 0,
    };
    take(VALUE + own, room)
        && match value {
            Value::Array(items) => items.iter().all(|item| fits(item, room)),
            Value::Object(entries) => entries
                .iter()
                .all(|(key, value)| take(key.len(), room) && fits(value, room)),
            _ => true,
        }
}

fn take(bytes: usize, room: &mut usize) -> bool {
    match room.checked_sub(bytes) {
        Some(left) => {
            *room = left;
            true
        }
        None => false,
    }
}
