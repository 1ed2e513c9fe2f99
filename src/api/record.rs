//! The parts of a request that calls a tool, and of its answer, that the facts keep.

use std::sync::Arc;

use ovos_toolbox_wire::CallOutcome;
use serde_json::Value;

use super::error::WireError;
use super::memory_budget::{MemoryBudget, entries_fit, fits};
use super::redaction::Redaction;
use super::request::Request;
use crate::registry::Tool;
use engine::{Answer, CallFacts, Facts, RequestOrigin};
use section::HiddenArguments;

/// How many bytes of memory the facts may keep of a request and its answer together. Facts wait for their followers;
/// without a bound a few calls with large arguments would fill the memory.
const LONGEST: usize = 256 << 10;

/// The part of [`LONGEST`] that is reserved for an error.
const ERROR: usize = 8 << 10;

/// What the facts keep of a request that is being answered. Without a follower nothing is kept.
pub(super) struct RequestRecord<'a> {
    request: &'a Request,
    facts: &'a Facts,
    /// Made for the first fact that has a follower.
    asked: Option<Arc<RequestOrigin>>,
    room: MemoryBudget,
    redaction: Redaction<'a>,
    /// The call that the request makes.
    pub(super) call: Option<CallFacts>,
    /// How that call ended; `None` if it did not run.
    pub(super) outcome: Option<CallOutcome>,
}

impl<'a> RequestRecord<'a> {
    /// `hidden` are the arguments that no fact shows.
    pub(super) fn new(request: &'a Request, facts: &'a Facts, hidden: &'a HiddenArguments) -> Self {
        Self {
            request,
            facts,
            asked: None,
            room: MemoryBudget::new(LONGEST - ERROR),
            redaction: Redaction::new(hidden),
            call: None,
            outcome: None,
        }
    }

    /// The request, for a fact about a call of these tools. It is read only for a follower, because all of its arguments are
    /// measured.
    pub(super) fn origin(&mut self, tools: &[Arc<Tool>]) -> Arc<RequestOrigin> {
        if self.asked.is_none() && self.facts.is_followed() {
            for tool in tools {
                self.redaction.declare(tool.compiled.secrets());
            }
            let request = keep(self.request, &mut self.room, &mut self.redaction);
            self.room.add(ERROR);
            self.asked = Some(Arc::new(request));
        }
        self.asked.clone().unwrap_or_default()
    }

    /// Adds the answer to the facts, and before it that the call did not run, if it did not. `tools` are those that the request
    /// names.
    pub(super) fn answered(mut self, outcome: &Result<Value, WireError>, tools: &[Arc<Tool>]) {
        let origin = self.origin(tools);
        let refused = self.outcome.is_none();
        if let (true, Some(call), Err(error)) = (refused, &self.call, outcome) {
            call.refused(&self.redaction.of_error(&error.text, refused));
        }
        let mut answer = Answer {
            ok: outcome.is_ok(),
            outcome: self.outcome,
            elapsed_ms: u64::try_from(self.request.received.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..Answer::default()
        };
        if self.facts.is_followed() {
            match outcome {
                Ok(result) if self.room.takes(|room| fits(result, room)) => {
                    answer.result = self.redaction.of_result(result);
                    if answer.result.is_none() {
                        answer.left_out.push("result");
                    }
                }
                Ok(_) => answer.left_out.push("result"),
                Err(error) if self.room.takes_bytes(error.text.len()) => {
                    answer.error = Some(self.redaction.of_error(&error.text, refused));
                }
                Err(_) => answer.left_out.push("error"),
            }
        }
        self.facts.answered(self.call.as_ref(), origin, answer);
    }
}

/// The request, as far as there is room for it.
fn keep(request: &Request, room: &mut MemoryBudget, redaction: &mut Redaction<'_>) -> RequestOrigin {
    let mut left_out = Vec::new();
    let context = |key: &str| request.head.context.get(key).unwrap_or(&Value::Null);
    // Short keys come first, so that a large request does not displace them.
    let source = room.keep("source", context("source"), &mut left_out);
    let destination = room.keep("destination", context("destination"), &mut left_out);
    let session_id = Value::from(request.head.session_id());
    let session_id = room.keep("session_id", &session_id, &mut left_out);
    let data = redaction.of_request(&request.data);
    let fits = room.takes(|room| entries_fit(&data, room));
    if !fits {
        left_out.push("request");
    }
    RequestOrigin {
        topic: request.head.kind.clone(),
        source: source.cloned().unwrap_or_default(),
        destination: destination.cloned().unwrap_or_default(),
        session_id: session_id.and_then(|id| Some(id.as_str()?.to_owned())),
        request: fits.then_some(data),
        left_out,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use ovos_toolbox_wire::Object;

    use super::*;
    use bus::Message;

    #[test]
    fn a_request_is_kept_for_a_follower_only() {
        let head = Message::new("ovos.tools.invoke", Object::new());
        let data = Object::from_iter([("name".to_owned(), Value::from("add"))]);
        let request = Request::new(head, data, Instant::now());
        let facts = Facts::default();
        let hidden = HiddenArguments::default();
        let mut record = RequestRecord::new(&request, &facts, &hidden);
        assert!(record.origin(&[]).request.is_none());
        let _follower = facts.follow();
        let origin = record.origin(&[]);
        assert_eq!(origin.topic, "ovos.tools.invoke");
        assert_eq!(origin.request.as_deref(), Some(&*request.data));
        assert!(Arc::ptr_eq(&origin, &record.origin(&[])), "it is made once");
    }
}
