//! The answers of a toolbox, as the service's types.
//!
//! Pure: text in, types out. A broken answer becomes a [`Failure`] that says what is wrong; nothing that a toolbox sends can make
//! a function here panic. Nesting is bounded by `serde_json`'s own limit of 128 levels (see [`json`]).

use ovos_toolbox_wire::{Completion, Conclusion, Content, Failure, Plan};
use program::json;
use program::payload::{self, broken, unusable};
use protocol::{Answer, Raw, RunEnd};
use serde_json::Value;

use engine::{NoAnswer, RunResult};

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

/// Reads the result of `plan`; `None` where the toolbox has no plan for the tool.
pub(crate) fn plan(json: &str) -> Result<Option<Plan>, Failure> {
    let plan: Option<Plan> = json::read(json).map_err(|e| unusable("the plan", &e))?;
    match plan {
        Some(plan) if plan.actions.is_empty() => {
            Err(broken("the plan", "has no action; it needs at least one"))
        }
        plan => Ok(plan),
    }
}

/// Reads the result of `conclude`; `None` where the toolbox leaves the result to the service.
pub(crate) fn conclusion(json: &str) -> Result<Option<Conclusion>, Failure> {
    if json == "null" {
        return Ok(None);
    }
    Ok(Some(match payload::read("the conclusion", json)? {
        Ok((output, _)) => Conclusion::Output(output),
        Err(failure) => Conclusion::Error(failure),
    }))
}

/// The result in an answer.
///
/// # Errors
/// Why the order was not carried out.
pub(crate) fn into_result<T>(answer: Answer<T>) -> Result<T, Box<NoAnswer>> {
    match answer {
        Answer::Ok(value) => Ok(value),
        Answer::Error(failure) => Err(NoAnswer::Failed(failure_of(&failure)).into()),
        Answer::Lost(failure) => Err(NoAnswer::Closed(failure_of(&failure)).into()),
    }
}

fn failure_of(failure: &Raw<Failure>) -> Failure {
    json::read(failure.text()).unwrap_or_else(|error| broken("the failure cannot be read:", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_read_or_says_what_is_wrong_with_it() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for (output, content, expected) in [
            (
                "123456789012345678901234567890",
                None,
                "output 123456789012345678901234567890",
            ),
            ("1", Some("[7]"), "output 1 with [7]"),
            ("1", Some("7"), "output 1 with [7]"),
            (
                &deep,
                None,
                "error ToolboxError: the result is not usable: recursion limit",
            ),
        ] {
            let end = RunEnd::Output(Raw::from_text(output.to_owned()).unwrap());
            let raw = content.map(|text| Raw::from_text(text.to_owned()).unwrap());
            let found = match ended(&end, raw.as_ref()) {
                RunResult::Reported(Completion::Output(value)) => format!("output {value}"),
                RunResult::Reported(Completion::Error(failure)) => format!("error {failure}"),
                RunResult::Shown { output, content } => {
                    format!("output {output} with {}", Value::from(content))
                }
                other => format!("{other:?}"),
            };
            assert!(
                found.starts_with(expected),
                "{found:?} should start with {expected:?}"
            );
        }
    }

    #[test]
    fn a_plan_that_says_nothing_is_told_apart_from_none() {
        assert_eq!(plan("null").unwrap(), None);
        for (text, expected) in [
            (r#"{"actions":[]}"#, "ToolboxError: the plan has no action"),
            ("[1]", "ToolboxError: the plan is not usable:"),
        ] {
            let failure = plan(text).unwrap_err().to_string();
            assert!(failure.starts_with(expected), "{text}: {failure}");
        }
    }

    #[test]
    fn a_failure_that_cannot_be_read_says_so() {
        let answer: Answer<()> = Answer::Error(Raw::from_text("5".to_owned()).unwrap());
        let failure = into_result(answer).unwrap_err().into_failure();
        assert_eq!(failure.kind, "ToolboxError", "{failure}");
    }
}
