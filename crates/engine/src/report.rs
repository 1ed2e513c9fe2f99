//! The outcome and the result of a report.
//!
//! Pure. Only this module decides the outcome of a whole call, and the result where the toolbox leaves it to the
//! service.

use ovos_toolbox_wire::{ActionReport, CallOutcome, Conclusion, Failure, Object, Outcome, Report};
use serde_json::Value;

use super::call::Cause;

/// The outcome of the call: `completed` if every action is; otherwise by the cause that ended the call; without a
/// cause, by the worst outcome of its actions.
pub(crate) fn call_outcome(actions: &[ActionReport], cause: Option<&Cause>) -> CallOutcome {
    let any = |outcome| actions.iter().any(|line| line.outcome == outcome);
    if actions.iter().all(|line| line.outcome == Outcome::Completed) {
        return CallOutcome::Completed;
    }
    match cause {
        Some(Cause::EmergencyStop { .. }) => CallOutcome::Stopped,
        Some(Cause::TimedOut { .. }) => CallOutcome::TimedOut,
        Some(_) => CallOutcome::Cancelled,
        None if any(Outcome::Failed) => CallOutcome::Failed,
        None if any(Outcome::TimedOut) || any(Outcome::Abandoned) => CallOutcome::TimedOut,
        None if any(Outcome::Cancelled) => CallOutcome::Cancelled,
        None => CallOutcome::Failed,
    }
}

/// The result for a toolbox without a `conclude`: the output of the single action, or the outputs by action id. When
/// the call did not complete, the result is the error of the first action that neither completed nor was skipped.
pub(crate) fn conclude(report: &Report) -> Conclusion {
    if report.outcome != CallOutcome::Completed {
        let worst = report
            .actions
            .iter()
            .find(|line| !matches!(line.outcome, Outcome::Completed | Outcome::Skipped))
            .and_then(|line| line.error.clone());
        return Conclusion::Error(
            worst.unwrap_or_else(|| Failure::new("RuntimeError", "an action did not complete")),
        );
    }
    let output = |line: &ActionReport| {
        line.output
            .clone()
            .unwrap_or_else(|| Value::Object(Object::new()))
    };
    match report.actions.as_slice() {
        [only] => Conclusion::Output(output(only)),
        many => Conclusion::Output(Value::Object(
            many.iter().map(|line| (line.id.clone(), output(line))).collect(),
        )),
    }
}
