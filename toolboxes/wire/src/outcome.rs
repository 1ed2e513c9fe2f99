//! What a toolbox sends back: completions, conclusions, progress and events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why something failed, in a form that a caller can act on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The cause in one word, such as `ValueError`; it precedes the colon in the error's text.
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
    /// Done, with this output.
    Output(Value),
    /// Not done.
    Error(Failure),
}

/// The answer that `conclude()` makes from a report. Exactly one of the two keys is present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// The tool's result, even if it says `success: false`.
    Output(Value),
    /// The call failed.
    Error(Failure),
}

/// Progress of an action: the payload of `host.progress`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// 0.0 to 1.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// Text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Details for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// How urgent an event is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// For information.
    #[default]
    Info,
    /// Needs attention.
    Warning,
    /// Something does not work.
    Error,
}

/// A notification from a toolbox: the payload of `host.event`.
///
/// The service acts on the kinds `backend` (`{state, reason}`), `latched` (`{reason}`) and `tools_changed`; all kinds
/// are published on the bus.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// What happened, in one word.
    pub kind: String,
    /// How urgent it is.
    #[serde(default)]
    pub severity: Severity,
    /// Details of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}
