//! What a model reads about the outcome of a call: a result, or a failure that says what to send instead. Pure.

use client::payload::{Confirm, ErrorDetail, InvokeResponse, failure_key};
use client::{ClientError, Received, Refusal};
use ovos_toolbox_wire::{FailureKind, Object};
use serde_json::{Value, json};

use crate::carried_call::CANCEL_WAIT;
use crate::{ListedTool, NoAnswer, StartError};

/// The outcome of a call, for a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The text that the model reads.
    pub text: String,
    /// The outcome as an object: what the tool returned, or `{"error": {"kind", "message", ...}}`.
    pub data: Value,
    /// Whether the call failed.
    pub failed: bool,
}

impl Answer {
    /// A result.
    #[must_use]
    pub fn success(text: &str, data: Value) -> Self {
        let text = text.to_owned();
        let failed = false;
        Self { text, data, failed }
    }

    /// A failure.
    #[must_use]
    pub fn failure(text: &str, data: Value) -> Self {
        let text = text.to_owned();
        let failed = true;
        Self { text, data, failed }
    }

    /// Converts the answer of the service.
    #[must_use]
    pub fn of(tool: &ListedTool, answer: &Received<InvokeResponse>) -> Self {
        match answer.accepted() {
            Ok(()) => output(answer.data.get("result").cloned().unwrap_or_default()),
            Err(error) => Self::refused(tool, &error),
        }
    }

    /// Converts a call without an answer, or with an error as its answer.
    #[must_use]
    pub fn refused(tool: &ListedTool, error: &ClientError) -> Self {
        match error {
            ClientError::Refused(refusal) => refusal_of(tool, refusal),
            unsent if unsent.is_unsent() => Self::not_carried_out(tool, unsent),
            other => Self::failure(
                &format!(
                    "{other}. `{}` may or may not have been carried out: check before you call it again.",
                    tool.name
                ),
                json!({"error": {"kind": "NoAnswer", "message": other.to_string()}}),
            ),
        }
    }

    /// A call that its client cancelled for this reason.
    #[must_use]
    pub fn cancelled(tool: &ListedTool, why: &str) -> Self {
        Self::failure(
            &format!("`{}` was cancelled: {why}.", tool.name),
            json!({"error": {"kind": FailureKind::CancelledError, "message": why}}),
        )
    }

    /// A request that carried nothing out: it was not sent, or it was only for a plan.
    #[must_use]
    pub fn not_carried_out(tool: &ListedTool, error: &ClientError) -> Self {
        Self::failure(
            &format!("`{}` was not carried out: {error}.", tool.name),
            json!({"error": {"kind": "NotSent", "message": error.to_string()}}),
        )
    }

    /// A call that did not begin.
    #[must_use]
    pub fn not_begun(tool: &ListedTool, why: &StartError) -> Self {
        match why {
            StartError::Client(error) => Self::not_carried_out(tool, error),
            StartError::Stopped => Self::cancelled(tool, &why.to_string()),
        }
    }

    /// A call without an answer. `why` is the reason for which its client cancelled it.
    #[must_use]
    pub fn lost(tool: &ListedTool, lost: &NoAnswer, why: &str) -> Self {
        match lost {
            NoAnswer::Client(error) => Self::refused(tool, error),
            NoAnswer::StillRuns => Self::failure(
                &format!(
                    "`{}` was asked to end ({why}), but was still running {} s later. It may still be moving: check its state, \
                     or stop it.",
                    tool.name,
                    CANCEL_WAIT.as_secs()
                ),
                json!({"error": {"kind": "NoAnswer", "message": lost.to_string()}}),
            ),
        }
    }
}

/// Returns the confirmation that an answer asks for; `None` if it asks for none.
#[must_use]
pub fn confirmation_of(answer: &Received<InvokeResponse>) -> Option<Confirm> {
    serde_json::from_value(answer.data.get("confirm")?.clone()).ok()
}

/// A call that waits for a person at the machine, because the client's user was not asked. The token is not shown, because a model
/// must not confirm a call.
#[must_use]
pub fn approval_required(tool: &ListedTool, confirm: &Confirm, why: &str) -> Answer {
    let Confirm {
        id,
        text,
        expires_ms,
        note,
        ..
    } = confirm;
    let note = note.as_ref().map(|note| format!(" {note}.")).unwrap_or_default();
    Answer::failure(
        &format!(
            "ConfirmationRequired: {text}\n`{}` did not run: it needs approval, and {why}. Tell the user to run `ovos-tools \
             approve {id}` on the service's machine within {} s; then call it again with the same arguments.{note}",
            tool.name,
            expires_ms / 1000
        ),
        json!({"error": {"kind": FailureKind::ConfirmationRequired, "message": text, "id": id, "expires_ms": expires_ms}}),
    )
}

/// Converts what a tool returned. An output that says of itself that it failed is a failure.
fn output(value: Value) -> Answer {
    let failed = failure_key(&value).is_some();
    // Up to its revision 2025-11-25, MCP allows only an object as structured content.
    let structured = match value {
        Value::Object(_) => value,
        other => json!({"result": other}),
    };
    let text = structured.to_string();
    if failed {
        Answer::failure(&text, structured)
    } else {
        Answer::success(&text, structured)
    }
}

fn refusal_of(tool: &ListedTool, refusal: &Refusal) -> Answer {
    let kind = refusal.kind().unwrap_or(FailureKind::RuntimeError.into());
    let mut text = refusal.text.clone();
    if let Some(advice) = advice(tool, refusal) {
        text.push('\n');
        text.push_str(&advice);
    }
    let mut error = json!({"kind": kind, "message": refusal.text});
    if let Some(ErrorDetail { data, report, .. }) = &refusal.detail {
        if let Some(data) = data {
            error["data"] = data.clone();
        }
        if let Some(Ok(report)) = report.as_ref().map(serde_json::to_value) {
            error["report"] = report;
        }
    }
    Answer::failure(&text, json!({"error": error}))
}

/// Returns advice to the model about an error.
fn advice(tool: &ListedTool, refusal: &Refusal) -> Option<String> {
    Some(match refusal.known_kind()? {
        FailureKind::ValueError => match arguments(&tool.arguments) {
            Some(arguments) => format!("The arguments of `{}`: {arguments}.", tool.name),
            None => format!("`{}` takes no arguments.", tool.name),
        },
        FailureKind::EmergencyStop => {
            "Do not call it again: tell the user that an operator has to lift the stop; `ovos-tools status` shows the command."
                .to_owned()
        }
        FailureKind::BusyError => "Try again in a few seconds.".to_owned(),
        FailureKind::PermissionError => "Do not call it again: tell the user that it is not permitted, and why.".to_owned(),
        FailureKind::ToolboxUnavailable | FailureKind::ToolboxClosed => {
            "Try again in a few seconds; if that does not help, tell the user to look at `ovos-tools status`."
                .to_owned()
        }
        _ => return None,
    })
}

/// Describes the arguments of a schema in words: `a (integer, required), b (number from 0 to 1)`. `None` if it has none.
fn arguments(schema: &Object) -> Option<String> {
    let empty = Object::new();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
    let described: Vec<String> = properties
        .iter()
        .map(|(name, property)| {
            let mut words = vec![kind_of(property)];
            if is_required(name) {
                words.push("required".to_owned());
            }
            format!("{name} ({})", words.join(", "))
        })
        .collect();
    (!described.is_empty()).then(|| described.join(", "))
}

fn kind_of(property: &Value) -> String {
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return format!("one of {}", values.join(" | "));
    }
    let kind = match property.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join(" or ")
        }
        _ => "see its schema".to_owned(),
    };
    let bound = |key: &str, word: &str| property.get(key).map(|bound| format!(" {word} {bound}"));
    let from = bound("minimum", "from").unwrap_or_default();
    let to = bound("maximum", "to").unwrap_or_default();
    format!("{kind}{from}{to}")
}

#[cfg(test)]
mod tests {
    use ovos_toolbox_wire::Effect;

    use super::*;

    fn tool(schema: Value) -> ListedTool {
        ListedTool::example("arm", "wave", Effect::Motion, schema)
    }

    #[test]
    fn outputs_are_structured_and_say_themselves_whether_they_failed() {
        for (value, structured, failed) in [
            (json!({"result": 3}), json!({"result": 3}), false),
            (json!([1, 2]), json!({"result": [1, 2]}), false),
            (json!(null), json!({"result": null}), false),
            (
                json!({"success": false, "message": "no"}),
                json!({"success": false, "message": "no"}),
                true,
            ),
            (json!({"ok": true}), json!({"ok": true}), false),
        ] {
            let answer = output(value);
            assert_eq!(answer.text, structured.to_string());
            assert_eq!((answer.data, answer.failed), (structured, failed));
        }
    }

    /// What a model reads about a call without an answer decides whether it calls again, and whether it warns its user.
    #[test]
    fn a_call_without_an_answer_is_told_as_what_is_known_of_it() {
        let tool = tool(json!({}));
        let url = || "ws://localhost:8181/core".parse().unwrap();
        let not_sent = || ClientError::NotSent { url: url() };
        let too_large = || ClientError::TooLarge {
            topic: "ovos.tools.invoke".to_owned(),
            size: 2,
            limit: 1,
        };
        let lost = ClientError::Lost {
            url: url(),
            cause: "end of stream".to_owned(),
        };
        let why = "its user said stop";
        let (never, unknown, moves) = ("was not carried out", "may or may not", "may still be moving");
        for (answer, expected) in [
            (Answer::not_begun(&tool, &StartError::Client(not_sent())), never),
            (Answer::not_begun(&tool, &StartError::Client(too_large())), never),
            (Answer::refused(&tool, &not_sent()), never),
            (Answer::lost(&tool, &NoAnswer::Client(lost), why), unknown),
            (Answer::lost(&tool, &NoAnswer::StillRuns, why), moves),
            (Answer::cancelled(&tool, why), "was cancelled"),
        ] {
            let phrases: Vec<&str> = [never, unknown, moves, "was cancelled"]
                .into_iter()
                .filter(|phrase| answer.text.contains(phrase))
                .collect();
            assert_eq!(phrases, [expected], "{}", answer.text);
            assert!(answer.failed && answer.text.contains("`wave`"), "{}", answer.text);
        }
    }

    #[test]
    fn refusals_say_what_to_send_instead() {
        let tool = tool(json!({
            "properties": {
                "times": {"type": "integer", "minimum": 1, "maximum": 9},
                "arm": {"enum": ["left", "right"]},
                "note": {"type": ["string", "null"]},
            },
            "required": ["times"],
        }));
        for (reason, expected) in [
            (
                "ValueError: times: expected an integer",
                "times (integer from 1 to 9, required), arm (one of \"left\" | \"right\"), note (string or null)",
            ),
            (
                "EmergencyStop: stopped",
                "an operator has to lift the stop; `ovos-tools status`",
            ),
            ("BusyError: full", "Try again"),
        ] {
            let refusal = Refusal {
                text: reason.to_owned(),
                detail: None,
            };
            let answer = Answer::refused(&tool, &ClientError::Refused(Box::new(refusal)));
            let text = &answer.text;
            assert!(text.starts_with(reason) && text.contains(expected), "{text}");
            assert!(answer.failed);
        }
    }
}
