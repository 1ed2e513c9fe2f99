//! What comes back from a toolbox: completions, conclusions, progress and events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why something did not work, in a form a caller can act on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// One word for the cause, such as `ValueError`; it becomes the part of the error before the colon.
    pub kind: String,
    /// Names the thing, what was expected and what to do.
    pub message: String,
    /// Details for a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Failure {
    /// A failure without details.
    #[must_use]
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: message.into(),
            data: None,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl std::error::Error for Failure {}

/// How an action ended: the payload of `host.complete`. Exactly one of the two keys is present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// It was done, and this came out.
    Output(Value),
    /// It was not done.
    Error(Failure),
}

/// What `conclude()` makes of a report. Exactly one of the two keys is present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// The tool's result, also when it says `success: false`.
    Output(Value),
    /// The call failed.
    Error(Failure),
}

/// How far an action is: the payload of `host.progress`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// 0.0 to 1.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// For a person to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// For a program to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// How urgent an event is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    #[default]
    Info,
    /// Somebody should look.
    Warning,
    /// Something does not work.
    Error,
}

/// What a toolbox reports by itself: the payload of `host.event`.
///
/// The kinds `backend` (`{state, reason}`), `latched` (`{reason}`) and `tools_changed` are acted on; all kinds go to
/// the bus.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// What happened, in one word.
    pub kind: String,
    /// How urgent it is.
    #[serde(default)]
    pub severity: Severity,
    /// Whatever belongs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}
