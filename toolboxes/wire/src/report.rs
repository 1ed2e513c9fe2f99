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
    /// Its time was up, and the toolbox confirmed that it ended.
    TimedOut,
    /// The call was cancelled, stopped or pre-empted, and the toolbox confirmed that the action ended or it never
    /// started.
    Cancelled,
    /// Not started, because an earlier action did not complete.
    Skipped,
    /// Its time was up or it was cancelled, and the toolbox did not confirm that within the grace period.
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

/// How a call ended as a whole: the worst of its actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// Every action completed.
    Completed,
    /// An action failed.
    Failed,
    /// The time of an action or of the call was up.
    TimedOut,
    /// A cancel request ended the call, or a safe call took its place.
    Cancelled,
    /// An emergency stop ended the call.
    Stopped,
}

/// One line of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionReport {
    /// Unique in its plan.
    pub id: String,
    /// What to do.
    pub name: String,
    /// What it uses.
    pub subsystems: Vec<String>,
    /// Its wave, counted from 1.
    pub wave: usize,
    /// How it ended.
    pub outcome: Outcome,
    /// From start to end, on a monotonic clock; 0 if it never started.
    pub duration_ms: u64,
    /// Its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// What happened to a call: exactly one entry for each action of its plan, in the plan's order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// How the call ended.
    pub outcome: CallOutcome,
    /// From the start of the first wave to the end of the last.
    pub duration_ms: u64,
    /// One entry for each action.
    pub actions: Vec<ActionReport>,
}
