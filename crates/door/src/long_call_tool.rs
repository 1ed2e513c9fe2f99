//! The tools with which a client asks for the calls that it left.

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_wire::{Effect, FailureKind, Object};
use serde_json::{Value, json};

use crate::{Answer, LongCall, LongCalls};

/// One of these tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongCallTool {
    /// Waits for a call, for a while.
    Wait,
    /// Ends a call.
    Cancel,
    /// Names the calls.
    List,
}

impl LongCallTool {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Wait, Self::Cancel, Self::List];

    /// The name of the tool.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait_call",
            Self::Cancel => "cancel_call",
            Self::List => "list_calls",
        }
    }

    /// The description that a model reads.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Wait => "Wait for a call that still runs.",
            Self::Cancel => "End a call that still runs.",
            Self::List => "List your calls.",
        }
    }

    /// What the tool does.
    #[must_use]
    pub fn effect(self) -> Effect {
        match self {
            Self::Cancel => Effect::Safe,
            Self::Wait | Self::List => Effect::Read,
        }
    }

    /// The schema of its arguments.
    #[must_use]
    pub fn arguments(self) -> Object {
        let call = json!({"type": "string"});
        let schema = match self {
            Self::Wait => json!({
                "type": "object",
                "properties": {"call_id": call, "seconds": {"type": "number"}},
                "required": ["call_id"],
            }),
            Self::Cancel => {
                json!({"type": "object", "properties": {"call_id": call}, "required": ["call_id"]})
            }
            Self::List => json!({"type": "object", "properties": {}}),
        };
        match schema {
            Value::Object(schema) => schema,
            _ => Object::new(),
        }
    }

    /// The tool with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }
}

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

/// How long `wait_call` waits with these arguments: at most `limit`, which is also what it waits where they do not say.
#[must_use]
pub fn wait_limit(arguments: &Object, limit: Duration) -> Duration {
    let seconds = arguments.get("seconds").and_then(Value::as_f64);
    let wanted = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    wanted.map_or(limit, |wanted| wanted.min(limit))
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
            Some(why) => format!("It was told to end ({why}), and comes to rest."),
            None => format!(
                "Call wait_call with this call_id for its result, within {} s each time: otherwise it is ended, and what it moves \
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
            "`{}` was told to end, and what it moves comes to rest.",
            self.tool()
        );
        Answer::success(&text, self.described())
    }
}

/// Seconds with at most one decimal.
fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}
