//! The answers of a toolbox: status and text become the content of a notice.
//!
//! Pure: text in, types out. Checks only that a payload is JSON; the service reads its content. A broken answer becomes a
//! [`Failure`] that says what is wrong; nothing that a toolbox sends can make a function here panic. Nesting is bounded by
//! `serde_json`'s own limit of 128 levels (see [`json`]).

use ovos_toolbox_abi::{Status, status};
use ovos_toolbox_wire::{Failure, FailureKind};
use program::json;
use program::payload::{self, MAX_FAILURE_BYTES, Shown, broken, unusable};
use protocol::{Raw, RunEnd};
use serde_json::Value;

use crate::bytes::{Owned, Unreadable};

/// The failure for a status without a text.
pub(crate) fn bare(status: Status, what: &str) -> Failure {
    let (kind, message) = match status {
        status::BAD_ARGS => (FailureKind::ValueError, "rejected the arguments"),
        status::CANCELLED => (FailureKind::CancelledError, "was cancelled"),
        status::BUSY => (FailureKind::BusyError, "is busy"),
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
            failure.message = format!(
                "{}; its reason is not a valid failure object: {e}",
                failure.message
            );
            failure
        }),
        Err(e) => broken(&format!("the reason that {what} gave"), e),
    }
}

/// How a run ended, from the arguments of `complete`.
pub(crate) fn run_end(status: Status, json: Result<&str, Unreadable>) -> (RunEnd, Shown) {
    if status == status::CANCELLED {
        return (RunEnd::Cancelled, None);
    }
    let read = match json {
        Ok(text) => payload::read::<Raw<Value>>("the result", text),
        Err(error) => Err(broken("the result", error)),
    };
    let end = match (status, read) {
        (status::OK, Ok(Ok((output, shown)))) => return (RunEnd::Output(output), shown),
        (_, Ok(Err(failure))) | (status::OK, Err(failure)) => RunEnd::Error(Raw::of(&failure)),
        (status, _) => RunEnd::Error(Raw::of(&bare(status, "the action"))),
    };
    (end, None)
}

/// Checks that a function returned JSON other than `null`, which would mean that it returned nothing. The service reads
/// the content.
pub(crate) fn unread<T>(what: &str, json: Result<&str, Unreadable>) -> Result<Raw<T>, Failure> {
    let text = json.map_err(|e| broken(what, e))?;
    match Raw::from_text(text.to_owned()) {
        Ok(raw) if raw.text() == "null" => Err(broken(what, "is null")),
        Ok(raw) => Ok(raw),
        Err(error) => Err(unusable(what, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: Status, json: &str, expected: &str) {
        let (end, shown) = run_end(status, Ok(json));
        let content = shown.map_or(String::new(), |shown| format!(" with {}", shown.text()));
        let text = match end {
            RunEnd::Output(output) => format!("output {}{content}", output.text()),
            RunEnd::Error(failure) => {
                let failure: Failure = json::read(failure.text()).unwrap();
                format!("error {failure}")
            }
            RunEnd::Cancelled => "cancelled".to_owned(),
            RunEnd::Lost(_) => "lost".to_owned(),
        };
        assert!(
            text.starts_with(expected),
            "{text:?} should start with {expected:?}"
        );
    }

    #[test]
    fn a_completion_means_what_its_status_and_keys_say() {
        for (code, json, expected) in [
            (status::OK, r#"{"output":{"sum":3}}"#, r#"output {"sum":3}"#),
            (status::OK, r#"{"output":null,"later":1}"#, "output null"),
            (
                status::OK,
                r#"{"output":{"a":1},"content":[{"type":"text","data":"x"}]}"#,
                r#"output {"a":1} with [{"type":"text","data":"x"}]"#,
            ),
            (status::OK, r#"{"output":1,"content":null}"#, "output 1"),
            (status::OK, r#"{"output":1,"content":7}"#, "output 1 with 7"),
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
        for (text, expected) in [
            ("null", "ToolboxError: the plan is null"),
            ("{", "ToolboxError: the plan is not usable:"),
        ] {
            let failure = unread::<Value>("the plan", Ok(text)).unwrap_err().to_string();
            assert!(failure.starts_with(expected), "{text}: {failure}");
        }
    }
}
