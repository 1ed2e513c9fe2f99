//! What a toolbox answered, from status and JSON to the service's types.
//!
//! Pure: text in, types out. A broken answer becomes a [`Failure`] that says what was wrong with it; nothing a toolbox
//! sends can make a function here panic. Nesting is bounded by `serde_json`'s own limit of 128 levels (see [`json`]).

use ovos_toolbox_abi::{Status, status};
use ovos_toolbox_wire::{Action, Completion, Conclusion, Failure, Plan};
use protocol::{Raw, RunEnd};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::contract::json;
use crate::ffi::bytes::{Owned, Unreadable};
use engine::Ended;

/// Failures are short; a longer one is a mistake of the toolbox.
const MAX_FAILURE_BYTES: usize = 64 * 1024;

/// The payload of `complete` and `conclude`, as lenient about unknown keys as the boundary promises.
#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Payload<T> {
    #[serde(default, deserialize_with = "present")]
    output: Option<T>,
    #[serde(default)]
    error: Option<Failure>,
}

/// Tells `null` from a missing key.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
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
    match completion(status, json) {
        None => Ended::Cancelled,
        Some(Ok(output)) => Ended::Reported(Completion::Output(output)),
        Some(Err(failure)) => Ended::Reported(Completion::Error(failure)),
    }
}

/// As [`ended`], for another process, which reads the output.
pub(crate) fn run_end(status: Status, json: Result<&str, Unreadable>) -> RunEnd {
    match completion(status, json) {
        None => RunEnd::Cancelled,
        Some(Ok(output)) => RunEnd::Output(output),
        Some(Err(failure)) => RunEnd::Error(Raw::of(&failure)),
    }
}

/// That an output which another process passed on unread is none.
pub(crate) fn unusable(error: &serde_json::Error) -> Failure {
    protocol("the result is not usable:", error)
}

/// The output or the failure; `None` where it was cancelled.
fn completion<T: DeserializeOwned>(
    status: Status,
    json: Result<&str, Unreadable>,
) -> Option<Result<T, Failure>> {
    if status == status::CANCELLED {
        return None;
    }
    Some(match (status, payload("the result", json)) {
        (status::OK, Ok(Ok(output))) => Ok(output),
        (_, Ok(Err(failure))) | (status::OK, Err(failure)) => Err(failure),
        (status, _) => Err(bare(status, "the action")),
    })
}

/// What `conclude` returned.
pub(crate) fn conclusion(json: Result<&str, Unreadable>) -> Result<Conclusion, Failure> {
    Ok(match payload("the conclusion", json)? {
        Ok(output) => Conclusion::Output(output),
        Err(failure) => Conclusion::Error(failure),
    })
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

/// The output or the failure that a toolbox gave, if it gave one.
fn payload<T: DeserializeOwned>(
    what: &str,
    json: Result<&str, Unreadable>,
) -> Result<Result<T, Failure>, Failure> {
    let text = json.map_err(|e| protocol(what, e))?;
    let payload: Payload<T> = json::read(text).map_err(|e| protocol(&format!("{what} is not usable:"), e))?;
    match payload {
        Payload {
            output: Some(output),
            error: None,
        } => Ok(Ok(output)),
        Payload {
            output: None,
            error: Some(error),
        } => Ok(Err(error)),
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
    use serde_json::Value;

    #[track_caller]
    fn check(status: Status, json: &str, expected: &str) {
        let output = |value: &Value| format!("output {value}");
        let shown = match ended(status, Ok(json)) {
            Ended::Reported(Completion::Output(value)) => output(&value),
            Ended::Reported(Completion::Error(failure)) => format!("error {failure}"),
            Ended::Cancelled => "cancelled".to_owned(),
            Ended::Lost(failure) | Ended::NeverBegun(failure) => format!("lost {failure}"),
        };
        let error =
            |failure: &Raw<Failure>| format!("error {}", json::read::<Failure>(failure.text()).unwrap());
        let elsewhere = match run_end(status, Ok(json)) {
            RunEnd::Output(raw) => match json::read(raw.text()) {
                Ok(value) => output(&value),
                Err(e) => format!("error {}", unusable(&e)),
            },
            RunEnd::Error(failure) => error(&failure),
            RunEnd::Cancelled => "cancelled".to_owned(),
            RunEnd::Lost(failure) => format!("lost {}", failure.text()),
        };
        assert!(
            elsewhere.starts_with(expected),
            "{elsewhere:?} should start with {expected:?}, read by another process"
        );
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
