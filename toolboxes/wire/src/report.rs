//! What happened to each action of a call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Failure;

/// How an action ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The toolbox reported success.
    Completed,
    /// The toolbox reported an error, refused the start, or died.
    Failed,
    /// Its time was up; the toolbox confirmed that it ended.
    TimedOut,
    /// The call was cancelled, stopped or pre-empted; the toolbox confirmed that it ended, or it never started.
    Cancelled,
    /// Not started, because something before it did not complete.
    Skipped,
    /// Its time was up or it was cancelled, and the toolbox did not confirm within the grace.
    Abandoned,
}

impl Outcome {
    /// The word used on the bus.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
            Self::Abandoned => "abandoned",
        }
    }
}

/// How a call ended as a whole: the worst of its actions, named by what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// Every action completed.
    Completed,
    /// An action failed.
    Failed,
    /// An action's time or the call's time was up.
    TimedOut,
    /// Somebody cancelled the call, or something safer took its place.
    Cancelled,
    /// An emergency stop ended the call.
    Stopped,
}

/// One line of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionReport {
    /// Unique in its plan.
    pub id: String,
    /// What was to be done.
    pub name: String,
    /// What it was to be done with.
    pub subsystems: Vec<String>,
    /// Its wave, counted from 1.
    pub wave: usize,
    /// How it ended.
    pub outcome: Outcome,
    /// From start to end, measured on a monotonic clock; 0 when it never started.
    pub duration_ms: u64,
    /// What came out of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// What happened to a call: exactly one line for each action of its plan, in the plan's order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// How the call ended.
    pub outcome: CallOutcome,
    /// From the first wave's start to the last one's end.
    pub duration_ms: u64,
    /// One line an action.
    pub actions: Vec<ActionReport>,
}
