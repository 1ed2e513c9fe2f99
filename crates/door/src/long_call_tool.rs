//! The tools with which a client asks for the calls that it left.

use std::time::Duration;

use ovos_toolbox_wire::{Effect, Object};
use serde_json::{Value, json};

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

/// How long `wait_call` waits with these arguments: at most `limit`, which is also what it waits where they do not say.
#[must_use]
pub fn wait_limit(arguments: &Object, limit: Duration) -> Duration {
    let seconds = arguments.get("seconds").and_then(Value::as_f64);
    let wanted = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    wanted.map_or(limit, |wanted| wanted.min(limit))
}
