//! What a report amounts to.
//!
//! Pure. The only place that decides how a call as a whole ended, and what the answer is where a toolbox leaves that to
//! the service.

use ovos_toolbox_wire::{ActionReport, CallOutcome, Conclusion, Failure, Object, Outcome, Report};
use serde_json::Value;

use super::call::Cause;

/// How the call ended: completed if every action did; else what ended it; else the worst line.
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

/// The answer of a toolbox without a `conclude`: the single action's output, or the outputs by action id; any outcome
/// but completed is an error, which is the first line's that has one.
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
