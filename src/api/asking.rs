//! The parts of a request that calls a tool, and of its answer, that the facts keep.

use std::sync::Arc;
use std::time::Instant;

use ovos_toolbox_wire::CallOutcome;
use serde_json::Value;

use super::error::WireError;
use super::request::Request;
use super::room::{Room, entries_fit, fits};
use engine::{Answer, Asked, CallFacts, Facts};

/// How many bytes of memory the facts may keep of a request and its answer together. Facts wait for their followers;
/// without a bound a few calls with large arguments would fill the memory.
const LONGEST: usize = 256 << 10;

/// The part of [`LONGEST`] that is reserved for an error.
const ERROR: usize = 8 << 10;

/// A request that is being answered.
pub(super) struct Asking {
    pub(super) asked: Arc<Asked>,
    received: Instant,
    room: Room,
    /// The call that the request makes.
    pub(super) call: Option<CallFacts>,
    /// How that call ended.
    pub(super) outcome: Option<CallOutcome>,
    /// The toolbox, and the content that it returned.
    pub(super) content: Option<(String, Vec<Value>)>,
    /// The arguments that the tool did not get.
    pub(super) ignored: Vec<String>,
}

impl Asking {
    pub(super) fn new(request: &Request) -> Self {
        let mut room = Room(LONGEST - ERROR);
        let mut left_out = Vec::new();
        let context = |key: &str| request.head.context.get(key).unwrap_or(&Value::Null);
        // Short keys come first, so that a large request does not displace them.
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
            content: None,
            ignored: Vec::new(),
        }
    }

    /// Adds the answer to the facts.
    pub(super) fn answered(mut self, facts: &Facts, outcome: &Result<Value, WireError>) {
        let mut answer = Answer {
            ok: outcome.is_ok(),
            outcome: self.outcome,
            elapsed_ms: u64::try_from(self.received.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..Answer::default()
        };
        match outcome {
            // Without a follower no copy is needed.
            Ok(_) if !facts.is_followed() => {}
            Ok(result) if self.room.takes(|room| fits(result, room)) => answer.result = Some(result.clone()),
            Ok(_) => answer.left_out.push("result"),
            Err(error) if error.text.len() <= self.room.0 => answer.error = Some(error.text.clone()),
            Err(_) => answer.left_out.push("error"),
        }
        facts.answered(self.call.as_ref(), self.asked, answer);
    }
}
