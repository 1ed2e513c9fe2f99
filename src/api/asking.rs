//! A request that calls a tool, as its facts tell of it: what was asked, and the answer.

use std::sync::Arc;
use std::time::Instant;

use ovos_toolbox_wire::{CallOutcome, Object};
use serde_json::Value;

use super::Request;
use super::error::WireError;
use engine::{Answer, Asked, CallFacts, Facts};

/// What facts keep of a request and its answer together, in bytes of memory. Facts wait for their followers; without a
/// bound a few calls with large arguments would fill the memory.
const LONGEST: usize = 256 << 10;

/// The part of it that a request leaves to the error.
const ERROR: usize = 8 << 10;

/// What is counted for a value beside its text.
const VALUE: usize = 32;

/// A request that is being answered.
pub(super) struct Asking {
    pub(super) asked: Arc<Asked>,
    received: Instant,
    room: Room,
    /// The call that the request makes.
    pub(super) call: Option<CallFacts>,
    /// How that call ended.
    pub(super) outcome: Option<CallOutcome>,
}

impl Asking {
    pub(super) fn new(request: &Request) -> Self {
        let mut room = Room(LONGEST - ERROR);
        let mut left_out = Vec::new();
        let context = |key: &str| request.head.context.get(key).unwrap_or(&Value::Null);
        // The short ones first, so that they stay.
        let source = room.keep("source", context("source"), &mut left_out);
        let destination = room.keep("destination", context("destination"), &mut left_out);
        let session_id = Value::from(request.head.session_id());
        let session_id = room.keep("session_id", &session_id, &mut left_out);
        let kept = room.takes(|room| entries_fit(&request.data, room));
        if !kept {
            left_out.push("request");
        }
        room.0 += ERROR;
        let asked = Asked {
            topic: request.head.kind.clone(),
            source: source.cloned().unwrap_or_default(),
            destination: destination.cloned().unwrap_or_default(),
            session_id: session_id.and_then(|id| Some(id.as_str()?.to_owned())),
            request: kept.then(|| request.data.clone()),
            left_out,
        };
        Self {
            asked: Arc::new(asked),
            received: request.received,
            room,
            call: None,
            outcome: None,
        }
    }

    /// The request is answered with this.
    pub(super) fn answered(mut self, facts: &Facts, outcome: &Result<Value, WireError>) {
        let mut answer = Answer {
            ok: outcome.is_ok(),
            outcome: self.outcome,
            elapsed_ms: u64::try_from(self.received.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..Answer::default()
        };
        match outcome {
            // Nothing reads the copy.
            Ok(_) if !facts.is_followed() => {}
            Ok(result) if self.room.takes(|room| fits(result, room)) => answer.result = Some(result.clone()),
            Ok(_) => answer.left_out.push("result"),
            Err(error) if error.text.len() <= self.room.0 => answer.error = Some(error.text.clone()),
            Err(_) => answer.left_out.push("error"),
        }
        facts.answered(self.call.as_ref(), self.asked, answer);
    }
}

/// What is left of [`LONGEST`].
struct Room(usize);

impl Room {
    /// Takes the size of a part off the room, or nothing when it does not fit.
    fn takes(&mut self, fits: impl FnOnce(&mut usize) -> bool) -> bool {
        let mut left = self.0;
        let takes = fits(&mut left);
        if takes {
            self.0 = left;
        }
        takes
    }

    /// A part that fits; one that does not is named.
    fn keep<'a>(
        &mut self,
        name: &'static str,
        part: &'a Value,
        left_out: &mut Vec<&'static str>,
    ) -> Option<&'a Value> {
        let kept = self.takes(|room| fits(part, room)).then_some(part);
        if kept.is_none() {
            left_out.push(name);
        }
        kept
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
            Value::Object(entries) => entries_fit(entries, room),
            _ => true,
        }
}

fn entries_fit(entries: &Object, room: &mut usize) -> bool {
    entries
        .iter()
        .all(|(key, value)| take(key.len(), room) && fits(value, room))
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
