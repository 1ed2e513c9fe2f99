//! What a client is answered about the calls that it left.

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_wire::{FailureKind, Object};
use serde_json::{Value, json};

use crate::{Answer, LongCall, LongCallTool, LongCalls, OwnTool};

impl<T> LongCalls<T> {
    /// The call that the arguments of one of these tools name.
    ///
    /// # Errors
    /// The answer to a client that names none of its calls.
    pub fn named(&self, tool: LongCallTool, arguments: &Object) -> Result<Arc<LongCall<T>>, Answer> {
        let why = match arguments.get("call_id").and_then(Value::as_str) {
            None => format!(
                "{}: expected `call_id`, the id of a call that still runs",
                tool.name()
            ),
            Some(call_id) => match self.find(call_id) {
                Some(call) => return Ok(call),
                None => format!(
                    "{}: no call `{call_id:.80}` of yours still runs; list_calls names those that do",
                    tool.name()
                ),
            },
        };
        let data = json!({"error": {"kind": FailureKind::ValueError, "message": why}});
        Err(Answer::failure(
            &format!("{}: {why}", FailureKind::ValueError),
            data,
        ))
    }

    /// The answer to `list_calls`, which renews the leases.
    #[must_use]
    pub fn listed(&self) -> Answer {
        self.renew();
        let calls: Vec<Value> = self.list().iter().map(|call| call.described()).collect();
        let data = json!({ "calls": calls });
        Answer::success(&data.to_string(), data)
    }
}

impl<T> LongCall<T> {
    fn described(&self) -> Value {
        let state = match (self.has_ended(), self.was_told_to_end()) {
            (true, _) => "ended",
            (false, Some(_)) => "ending",
            (false, None) => "running",
        };
        json!({
            "call_id": self.call_id(),
            "tool": self.tool(),
            "state": state,
            "progress": self.progress(),
            "elapsed_s": tenths(self.age()),
            "lease_s": tenths(self.lease()),
        })
    }

    /// What a client reads about a call that still runs.
    #[must_use]
    pub fn goes_on(&self) -> Answer {
        let (tool, call_id) = (self.tool(), self.call_id());
        let progress = match self.progress() {
            said if said.is_empty() => String::new(),
            said => format!(", {said}"),
        };
        let end = match self.was_told_to_end() {
            Some(why) => format!("It is being ended ({why}); anything it moves is coming to rest."),
            None => format!(
                "Call wait_call with this call_id for its result, within {} s each time: otherwise it is ended and anything it moves \
                 comes to rest. cancel_call ends it at once.",
                tenths(self.lease())
            ),
        };
        let text = format!(
            "`{tool}` still runs after {} s{progress}. It is NOT done. Its call_id is {call_id}. {end}",
            tenths(self.age())
        );
        Answer::success(&text, self.described())
    }

    /// What a client reads about a call that it cancelled, and that has not ended yet.
    #[must_use]
    pub fn is_cancelled(&self) -> Answer {
        let text = format!(
            "`{}` is being ended; anything it moves is coming to rest.",
            self.tool()
        );
        Answer::success(&text, self.described())
    }
}

/// Seconds with at most one decimal.
fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}
