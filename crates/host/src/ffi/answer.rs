//! The answers of a toolbox: status and text become the content of a notice, and that becomes the service's types.
//!
//! Pure: text in, types out. The side that hosts the toolbox checks only that a payload is JSON; the service reads its
//! content. A broken answer becomes a [`Failure`] that says what is wrong; nothing that a toolbox sends can make a
//! function here panic. Nesting is bounded by `serde_json`'s own limit of 128 levels (see [`json`]).

use ovos_toolbox_abi::{Status, status};
use ovos_toolbox_wire::{Completion, Conclusion, Content, Failure, FailureKind, Plan};
use protocol::{Answer, Raw, RunEnd};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::contract::json;
use crate::ffi::bytes::{Owned, Unreadable};
use crate::ffi::runs::Shown;
use engine::{NoAnswer, RunResult};

/// The largest failure: a longer one is a mistake of the toolbox.
pub(crate) const MAX_FAILURE_BYTES: usize = 64 * 1024;

/// The payload of `complete` and `conclude`, as lenient about unknown keys as the boundary promises.
#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Payload<T> {
    #[serde(default, deserialize_with = "present")]
    output: Option<T>,
    #[serde(default)]
    error: Option<Failure>,
    /// Used by `complete` only.
    #[serde(default)]
    content: Shown,
}

/// Reads a value so that `null` differs from a missing key.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// A failure because the toolbox broke the rules of the boundary, not because its work failed.
pub(crate) fn protocol(what: &str, cause: impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::ToolboxError, format!("{what} {cause}"))
}

/// The failure for a status without a text.
pub(crate) fn bare(status: Status, what: &str) -> Failure {
    let (kind, message) = match status {
        status::BAD_ARGS => (FailureKind::ValueError, "says that the arguments cannot be used"),
        status::CANCELLED => (FailureKind::CancelledError, "was cancelled"),
        status::BUSY => (FailureKind::BusyError, "says: not now"),
        status::PANIC => (FailureKind::ToolboxPanic, "panicked"),
        status::UNKNOWN_TOOL => (FailureKind::ToolboxError, "does not know this tool"),
        _ => (FailureKind::ToolboxError, "failed without saying why"),
    };
    Failure::new(kind, format!("{what} {message}"))
}

/// The failure for a status that is not `OK`.
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

/// How a run ended, from the arguments of `complete`.
pub(crate) fn run_end(status: Status, json: Result<&str, Unreadable>) -> (RunEnd, Shown) {
    if status == status::CANCELLED {
        return (RunEnd::Cancelled, None);
    }
    let end = match (status, payload("the result", json)) {
        (status::OK, Ok(Ok((output, shown)))) => return (RunEnd::Output(output), shown),
        (_, Ok(Err(failure))) | (status::OK, Err(failure)) => RunEnd::Error(Raw::of(&failure)),
        (status, _) => RunEnd::Error(Raw::of(&bare(status, "the action"))),
    };
    (end, None)
}

/// How a run ended, as the engine's type. A toolbox cannot report that a run never began.
pub(crate) fn ended(end: &RunEnd, shown: Option<&Raw<Vec<Content>>>) -> RunResult {
    match end {
        RunEnd::Output(output) => match (json::read(output.text()), shown) {
            (Ok(output), None) => RunResult::Reported(Completion::Output(output)),
            (Ok(output), Some(shown)) => RunResult::Shown {
                output,
                content: items(shown),
            },
            (Err(error), _) => RunResult::Reported(Completion::Error(unusable("the result", &error))),
        },
        RunEnd::Error(failure) => RunResult::Reported(Completion::Error(failure_of(failure))),
        RunEnd::Cancelled => RunResult::Cancelled,
        RunEnd::Lost(failure) => RunResult::Lost(failure_of(failure)),
    }
}

/// The items of content, not checked. Content that is no list becomes one item, which is refused before it gets into an
/// answer.
fn items(shown: &Raw<Vec<Content>>) -> Vec<Value> {
    match json::read(shown.text()) {
        Ok(Value::Array(items)) => items,
        Ok(other) => vec![other],
        Err(error) => vec![Value::from(error.to_string())],
    }
}

/// Checks that a function returned JSON other than `null`, which would mean that it returned nothing. The service reads
/// the content.
pub(crate) fn unread<T>(what: &str, json: Result<&str, Unreadable>) -> Result<Raw<T>, Failure> {
    let text = json.map_err(|e| protocol(what, e))?;
    match Raw::from_text(text.to_owned()) {
        Ok(raw) if raw.text() == "null" => Err(protocol(what, "is null")),
        Ok(raw) => Ok(raw),
        Err(error) => Err(unusable(what, &error)),
    }
}

/// Reads the result of `plan`; `None` where the toolbox has no plan for the tool.
pub(crate) fn plan(json: &str) -> Result<Option<Plan>, Failure> {
    let plan: Option<Plan> = json::read(json).map_err(|e| unusable("the plan", &e))?;
    match plan {
        Some(plan) if plan.actions.is_empty() => {
            Err(protocol("the plan", "has no action; it needs at least one"))
        }
        plan => Ok(plan),
    }
}

/// Reads the result of `conclude`; `None` where the toolbox leaves the result to the service.
pub(crate) fn conclusion(json: &str) -> Result<Option<Conclusion>, Failure> {
    if json == "null" {
        return Ok(None);
    }
    Ok(Some(match payload("the conclusion", Ok(json))? {
        Ok((output, _)) => Conclusion::Output(output),
        Err(failure) => Conclusion::Error(failure),
    }))
}

/// The result in an answer.
///
/// # Errors
/// Why the order was not carried out.
pub(crate) fn said<T>(answer: Answer<T>) -> Result<T, Box<NoAnswer>> {
    match answer {
        Answer::Ok(value) => Ok(value),
        Answer::Error(failure) => Err(NoAnswer::Failed(failure_of(&failure)).into()),
        Answer::Lost(failure) => Err(NoAnswer::Closed(failure_of(&failure)).into()),
    }
}

/// The answer for a result.
pub(crate) fn answer<T>(said: Result<T, NoAnswer>) -> Answer<T> {
    match said {
        Ok(value) => Answer::Ok(value),
        Err(NoAnswer::Failed(failure)) => Answer::Error(Raw::of(&failure)),
        Err(gone) => Answer::Lost(Raw::of(&gone.into_failure())),
    }
}

fn failure_of(failure: &Raw<Failure>) -> Failure {
    json::read(failure.text()).unwrap_or_else(|error| protocol("the failure cannot be read:", error))
}

fn unusable(what: &str, error: &serde_json::Error) -> Failure {
    protocol(&format!("{what} is not usable:"), error)
}

/// The output and its content, or the failure that the toolbox reported instead.
fn payload<T: DeserializeOwned>(
    what: &str,
    json: Result<&str, Unreadable>,
) -> Result<Result<(T, Shown), Failure>, Failure> {
    let text = json.map_err(|e| protocol(what, e))?;
    let payload: Payload<T> = json::read(text).map_err(|e| unusable(what, &e))?;
    match payload {
        Payload {
            output: Some(output),
            error: None,
            content,
        } => Ok(Ok((output, content))),
        Payload {
            output: None,
            error: Some(error),
            ..
        } => Ok(Err(error)),
        Payload {
            output: Some(_),
            error: Some(_),
            ..
        } => Err(protocol(
            what,
            "has both `output` and `error`; exactly one is expected",
        )),
        Payload {
            output: None,
            error: None,
            ..
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
        let (end, shown) = run_end(status, Ok(json));
        let shown = match ended(&end, shown.as_ref()) {
            RunResult::Reported(Completion::Output(value)) => format!("output {value}"),
            RunResult::Reported(Completion::Error(failure)) => format!("error {failure}"),
            RunResult::Shown { output, content } => format!("output {output} with {}", Value::from(content)),
            RunResult::Cancelled => "cancelled".to_owned(),
            RunResult::Lost(failure) | RunResult::NeverBegun(failure) => format!("lost {failure}"),
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
                r#"{"output":{"a":1},"content":[{"type":"text","data":"x"}]}"#,
                r#"output {"a":1} with [{"type":"text","data":"x"}]"#,
            ),
            (status::OK, r#"{"output":1,"content":null}"#, "output 1"),
            (status::OK, r#"{"output":1,"content":7}"#, "output 1 with [7]"),
            (
                status::OK,
                r#"{"content":[],"error":{"kind":"E","message":"m"}}"#,
                "error E: m",
            ),
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

    #[test]
    fn what_is_not_json_and_what_says_nothing_is_told_apart() {
        let plan = |text| unread::<Option<Plan>>("the plan", Ok(text)).and_then(|raw| plan(raw.text()));
        for (text, expected) in [
            (r#"{"actions":[]}"#, "ToolboxError: the plan has no action"),
            ("null", "ToolboxError: the plan is null"),
            ("{", "ToolboxError: the plan is not usable:"),
            ("[1]", "ToolboxError: the plan is not usable:"),
        ] {
            let failure = plan(text).unwrap_err().to_string();
            assert!(failure.starts_with(expected), "{text}: {failure}");
        }
    }

    #[test]
    fn a_failure_that_cannot_be_read_says_so() {
        let answer: Answer<()> = Answer::Error(Raw::from_text("5".to_owned()).unwrap());
        let failure = said(answer).unwrap_err().into_failure();
        assert_eq!(failure.kind, "ToolboxError", "{failure}");
    }
}
