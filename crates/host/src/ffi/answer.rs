//! What a toolbox answered, from status and JSON to the service's types.
//!
//! Pure: text in, types out. A broken answer becomes a [`Failure`] that says what was wrong with it; nothing a toolbox
//! sends can make a function here panic. Nesting is bounded by `serde_json`'s own limit of 128 levels (see [`json`]).

use ovos_toolbox_abi::{Status, status};
use ovos_toolbox_wire::{Action, Completion, Conclusion, Failure, Plan};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::contract::json;
use crate::ffi::bytes::{Owned, Unreadable};
use engine::Ended;

/// Failures are short; a longer one is a mistake of the toolbox.
const MAX_FAILURE_BYTES: usize = 64 * 1024;

/// The payload of `complete` and `conclude`, as lenient about unknown keys as the boundary promises.
#[derive(Deserialize)]
struct Payload {
    #[serde(default, deserialize_with = "present")]
    output: Option<Value>,
    #[serde(default)]
    error: Option<Failure>,
}

/// Tells `null` from a missing key.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// A failure about the toolbox's side of the boundary rather than about the work.
pub(crate) fn protocol(what: &str, cause: impl std::fmt::Display) -> Failure {
    Failure::new("ToolboxError", format!("{what} {cause}"))
}

/// The failure that a status stands for when the toolbox gave no words.
pub(crate) fn bare(status: Status, what: &str) -> Failure {
    let (kind, message) = match status {
        status::BAD_ARGS => ("ValueError", "says that the arguments cannot be used"),
        status::CANCELLED => ("CancelledError", "was cancelled"),
        status::BUSY => ("BusyError", "says: not now"),
        status::PANIC => ("ToolboxPanic", "panicked"),
        status::UNKNOWN_TOOL => ("ToolboxError", "does not know this tool"),
        _ => ("ToolboxError", "failed without saying why"),
    };
    Failure::new(kind, format!("{what} {message}"))
}

/// The failure behind a status that is not `OK`.
pub(crate) fn failure(status: Status, words: &Owned, what: &str) -> Failure {
    match words.text(MAX_FAILURE_BYTES) {
        Ok("") => bare(status, what),
        Ok(text) => json::read(text).unwrap_or_else(|e| {
            let mut failure = bare(status, what);
            failure.message = format!("{}; its reason is not a failure object: {e}", failure.message);
            failure
        }),
        Err(e) => protocol(&format!("the reason that {what} gave"), e),
    }
}

/// How a run ended, from what `complete` was called with.
pub(crate) fn ended(status: Status, json: Result<&str, Unreadable>) -> Ended {
    if status == status::CANCELLED {
        return Ended::Cancelled;
    }
    let completion = match (status, payload("the result", json)) {
        (status::OK, Ok(Conclusion::Output(output))) => Completion::Output(output),
        (_, Ok(Conclusion::Error(error))) => Completion::Error(error),
        (status::OK, Err(failure)) => Completion::Error(failure),
        (status, _) => Completion::Error(bare(status, "the action")),
    };
    Ended::Reported(completion)
}

/// What `conclude` returned.
pub(crate) fn conclusion(json: Result<&str, Unreadable>) -> Result<Conclusion, Failure> {
    payload("the conclusion", json)
}

/// What `plan` returned.
pub(crate) fn plan(json: Result<&str, Unreadable>) -> Result<Vec<Action>, Failure> {
    let text = json.map_err(|e| protocol("the plan", e))?;
    let plan: Plan = json::read(text).map_err(|e| protocol("the plan is not usable:", e))?;
    if plan.actions.is_empty() {
        return Err(protocol("the plan", "has no action; it needs at least one"));
    }
    Ok(plan.actions)
}

fn payload(what: &str, json: Result<&str, Unreadable>) -> Result<Conclusion, Failure> {
    let text = json.map_err(|e| protocol(what, e))?;
    let payload: Payload = json::read(text).map_err(|e| protocol(&format!("{what} is not usable:"), e))?;
    match payload {
        Payload {
            output: Some(output),
            error: None,
        } => Ok(Conclusion::Output(output)),
        Payload {
            output: None,
            error: Some(error),
        } => Ok(Conclusion::Error(error)),
        Payload {
            output: Some(_),
            error: Some(_),
        } => Err(protocol(
            what,
            "has both `output` and `error`; exactly one is expected",
        )),
        Payload {
            output: None,
            error: None,
        } => Err(protocol(
            what,
            "has neither `output` nor `error`; exactly one is expected",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: Status, json: &str, expected: &str) {
        let shown = match ended(status, Ok(json)) {
            Ended::Reported(Completion::Output(value)) => format!("output {value}"),
            Ended::Reported(Completion::Error(failure)) => format!("error {failure}"),
            Ended::Cancelled => "cancelled".to_owned(),
            Ended::Lost(failure) | Ended::NeverBegun(failure) => format!("lost {failure}"),
        };
        assert!(
            shown.starts_with(expected),
            "{shown:?} should start with {expected:?}"
        );
    }

    #[test]
    fn a_completion_means_what_its_status_and_keys_say() {
        let deep = format!("{{\"output\":{}{}}}", "[".repeat(200), "]".repeat(200));
        for (code, json, expected) in [
            (status::OK, r#"{"output":{"sum":3}}"#, r#"output {"sum":3}"#),
            (status::OK, r#"{"output":null,"later":1}"#, "output null"),
            (
                status::OK,
                r#"{"output":123456789012345678901234567890}"#,
                "output 123456789012345678901234567890",
            ),
            (
                status::OK,
                r#"{"error":{"kind":"E","message":"m"}}"#,
                "error E: m",
            ),
            (status::OK, "{}", "error ToolboxError: the result has neither"),
            (
                status::OK,
                r#"{"output":1,"error":{"kind":"E","message":"m"}}"#,
                "error ToolboxError: the result has both",
            ),
            (status::OK, "", "error ToolboxError: the result is not usable"),
            (
                status::OK,
                &deep,
                "error ToolboxError: the result is not usable: recursion limit",
            ),
            (
                status::ERR,
                r#"{"error":{"kind":"E","message":"m"}}"#,
                "error E: m",
            ),
            (
                status::ERR,
                r#"{"output":1}"#,
                "error ToolboxError: the action failed",
            ),
            (status::PANIC, "", "error ToolboxPanic: the action panicked"),
            (status::CANCELLED, "", "cancelled"),
            (77, "", "error ToolboxError: the action failed"),
        ] {
            check(code, json, expected);
        }
    }
}
