//! The outcome of a call, in the form for a voice. Pure.

use client::Received;
use client::payload::{InvokeResponse, failure_key};
use door::{Answer, ListedTool, LongCall, shorten};
use ovos_toolbox_wire::FailureKind;
use serde_json::{Value, json};

/// The largest result, in bytes of JSON, and the longest text of a failure. Models do not read more, and forget what was before.
const MAX_RESULT: usize = 32 << 10;

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The result of the tool, as `{success, message, data}`.
    Result(Value),
    /// There is no result.
    Failure {
        /// The word by which programs recognise the error.
        kind: String,
        /// The description of the error, for a log.
        message: String,
        /// The sentence that the voice can say and act on.
        sentence: String,
    },
}

impl Outcome {
    /// Creates a failure whose message also says what to do.
    pub(crate) fn failure(kind: impl Into<String>, message: impl Into<String>) -> Self {
        let message = cut(message.into());
        Self::Failure {
            kind: kind.into(),
            sentence: message.clone(),
            message,
        }
    }

    /// Converts the service's answer to a call.
    pub(crate) fn of(tool: &ListedTool, answer: &Received<InvokeResponse>) -> Self {
        if let Some(confirm) = door::confirmation_of(answer) {
            return Self::refused(&door::approval_required(tool, &confirm, "a voice cannot give it"));
        }
        match answer.accepted() {
            Ok(()) => {
                let result = answer.data.get("result").cloned().unwrap_or_default();
                match shorten(tool, &result, MAX_RESULT) {
                    None => Self::Result(shaped(&tool.exported, result)),
                    Some(short) => {
                        let mut shaped = shaped(&tool.exported, short.value);
                        let message = shaped["message"].as_str().unwrap_or_default();
                        shaped["message"] = json!(format!("{message}. {}", short.remark));
                        Self::Result(shaped)
                    }
                }
            }
            Err(error) => Self::refused(&Answer::refused(tool, &error)),
        }
    }

    /// Converts a call without a result, from the answer that doors give to a model.
    pub(crate) fn refused(answer: &Answer) -> Self {
        let text = |key: &str| answer.data["error"][key].as_str().map(str::to_owned);
        Self::Failure {
            kind: text("kind").unwrap_or_else(|| FailureKind::RuntimeError.into()),
            message: cut(text("message").unwrap_or_else(|| answer.text.clone())),
            sentence: cut(answer.text.clone()),
        }
    }

    /// Converts the answer of a tool of the door itself.
    pub(crate) fn of_door(answer: Answer) -> Self {
        Self::Result(json!({"success": !answer.failed, "message": answer.text, "data": answer.data}))
    }

    /// Creates the answer to a call that still runs and whose end will be reported. `call` is the call, if it can be asked for.
    pub(crate) fn goes_on(tool: &str, call: Option<&LongCall<Self>>) -> Self {
        let handle = call.map(|call| format!(" as call_id {}", call.call_id()));
        let progress = call.map(LongCall::progress).filter(|said| !said.is_empty());
        let progress = progress.map(|said| format!(" ({said})"));
        let (handle, progress) = (handle.unwrap_or_default(), progress.unwrap_or_default());
        Self::Result(json!({
            "success": true,
            "message": format!("{tool} is still running{handle}{progress}. You will be told how it ends."),
            "data": {"state": "under_way"},
        }))
    }

    /// Describes the outcome in one sentence, for a call whose end is reported.
    pub(crate) fn sentence(&self, tool: &str) -> String {
        match self {
            Self::Result(result) => {
                let ended = match failure_key(result) {
                    None => "is done",
                    Some(_) => "did not succeed",
                };
                match result.get("message").and_then(Value::as_str) {
                    Some(message) => format!("{tool} {ended}: {message}."),
                    None => format!("{tool} {ended}."),
                }
            }
            Self::Failure { sentence, .. } => format!("{tool} did not succeed: {sentence}"),
        }
    }
}

/// Returns the beginning of a text that is too long.
fn cut(text: String) -> String {
    if text.len() <= MAX_RESULT {
        return text;
    }
    let end = text.floor_char_boundary(MAX_RESULT);
    format!("{} ... (of {} bytes)", &text[..end], text.len())
}

/// Returns a result in the form for voices, `{success, message, data}`. A result with this form stays unchanged.
fn shaped(tool: &str, result: Value) -> Value {
    let has_form = result.get("success").is_some_and(Value::is_boolean)
        && result.get("message").is_some_and(Value::is_string);
    let failed = failure_key(&result).is_some();
    let ended = if failed { "did not succeed" } else { "is done" };
    let reason = ["message", "error"]
        .iter()
        .find_map(|key| result.get(*key)?.as_str().map(str::to_owned));
    let message = reason
        .filter(|_| failed)
        .unwrap_or_else(|| format!("{tool} {ended}"));
    match has_form {
        true => result,
        false => json!({"success": !failed, "message": message, "data": result}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_form_that_voices_know() {
        let robot = json!({"success": true, "message": "Completed wave", "data": {"duration_ms": 1523}});
        let broken = json!({"success": false, "message": "arm: stuck", "data": {}});
        for (result, shaped_as) in [
            (robot.clone(), robot),
            (broken.clone(), broken),
            (
                json!({"result": 3}),
                json!({"success": true, "message": "wave is done", "data": {"result": 3}}),
            ),
            (
                json!(null),
                json!({"success": true, "message": "wave is done", "data": null}),
            ),
            (
                json!({"ok": false, "error": "no cup"}),
                json!({"success": false, "message": "no cup", "data": {"ok": false, "error": "no cup"}}),
            ),
            (
                json!({"success": true}),
                json!({"success": true, "message": "wave is done", "data": {"success": true}}),
            ),
        ] {
            assert_eq!(shaped("wave", result), shaped_as);
        }
    }

    #[test]
    fn failures_are_bounded() {
        let long = "ä".repeat(MAX_RESULT);
        let answer = Answer::failure(&long, json!({"error": {"kind": "K", "message": long}}));
        for outcome in [Outcome::failure("K", long.clone()), Outcome::refused(&answer)] {
            let Outcome::Failure {
                message, sentence, ..
            } = outcome
            else {
                panic!("a failure")
            };
            for text in [message, sentence] {
                assert!(text.len() < MAX_RESULT + 64, "{}", text.len());
                assert!(text.ends_with("(of 65536 bytes)"), "{}", text.len());
            }
        }
    }

    #[test]
    fn an_end_is_told_in_a_sentence() {
        let result = |success| Outcome::Result(json!({"success": success, "message": "m"}));
        for (outcome, expected) in [
            (result(true), "wave is done: m."),
            (result(false), "wave did not succeed: m."),
            (
                Outcome::failure("X", "X: broken"),
                "wave did not succeed: X: broken",
            ),
        ] {
            assert_eq!(outcome.sentence("wave"), expected);
        }
    }
}
