//! What a toolbox sends back: completions, conclusions, progress and events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Content;

/// Why something failed, in a form that a caller can act on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The cause in one word, such as `ValueError`; it precedes the colon in the error's text.
    pub kind: String,
    /// Says what is wrong, what was expected and what to do.
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

/// The payload of `host.complete`: exactly one of `output` and `error` is present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum Complete {
    /// The action is done.
    Done {
        /// What it returns.
        output: Value,
        /// Pictures and other media beside the output, at most 8.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        content: Vec<Content>,
    },
    /// The action is not done.
    Failed {
        /// Why.
        error: Failure,
    },
}

/// How an action ended.
#[derive(Clone, Debug, PartialEq)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_has_exactly_one_of_output_and_error() {
        for (json, is_one) in [
            (r#"{"output":1}"#, true),
            (r#"{"output":null,"content":[]}"#, true),
            (r#"{"error":{"kind":"E","message":"m"}}"#, true),
            (r#"{"output":1,"error":{"kind":"E","message":"m"}}"#, false),
            (r#"{"content":[],"error":{"kind":"E","message":"m"}}"#, false),
            (r#"{"content":[]}"#, false),
            ("{}", false),
        ] {
            let read = serde_json::from_str::<Complete>(json);
            assert_eq!(read.is_ok(), is_one, "{json}: {read:?}");
        }
    }
}
