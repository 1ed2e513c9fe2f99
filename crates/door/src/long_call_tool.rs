//! The tools with which a client asks for the calls that it left.

use std::time::Duration;

use ovos_toolbox_wire::{Effect, Object};
use serde_json::{Value, json};

use crate::OwnTool;
use crate::own_tool::arguments;

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

impl OwnTool for LongCallTool {
    const ALL: &'static [Self] = &[Self::Wait, Self::Cancel, Self::List];

    fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait_call",
            Self::Cancel => "cancel_call",
            Self::List => "list_calls",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Wait => "Wait for a call that still runs.",
            Self::Cancel => "End a call that still runs.",
            Self::List => "List your calls.",
        }
    }

    fn effect(self) -> Effect {
        match self {
            Self::Cancel => Effect::Safe,
            Self::Wait | Self::List => Effect::Read,
        }
    }

    fn arguments(self) -> Object {
        let call = json!({"type": "string"});
        match self {
            Self::Wait => arguments(
                json!({"call_id": call, "seconds": {"type": "number"}}),
                &["call_id"],
            ),
            Self::Cancel => arguments(json!({ "call_id": call }), &["call_id"]),
            Self::List => arguments(json!({}), &[]),
        }
    }
}

/// How long `wait_call` waits with these arguments: at most `limit`, which is also what it waits where they do not say.
#[must_use]
pub fn wait_limit(arguments: &Object, limit: Duration) -> Duration {
    let seconds = arguments.get("seconds").and_then(Value::as_f64);
    let wanted = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    wanted.map_or(limit, |wanted| wanted.min(limit))
}
