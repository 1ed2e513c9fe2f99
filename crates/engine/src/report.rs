//! The lines and the outcome of a report.
//!
//! Pure. Only this module decides how an action ended, and what a cause from outside makes of the whole call. The result where
//! the toolbox leaves that to the service is [`Report::conclusion`](ovos_toolbox_wire::Report::conclusion).

use std::time::Duration;

use ovos_toolbox_wire::{ActionReport, CallOutcome, Completion, Failure, FailureKind, Outcome};

use super::call::Cause;
use super::plan::PlannedAction;
use super::toolbox::RunResult;

/// The outcome of the call: `completed` if every action completed; otherwise the cause that ended the call decides;
/// without a cause, the worst outcome of the actions does.
pub(crate) fn call_outcome(actions: &[ActionReport], cause: Option<&Cause>) -> CallOutcome {
    match (CallOutcome::of(actions), cause) {
        (CallOutcome::Completed, _) => CallOutcome::Completed,
        (_, Some(Cause::EmergencyStop { .. })) => CallOutcome::Stopped,
        (_, Some(Cause::TimedOut { .. })) => CallOutcome::TimedOut,
        (_, Some(_)) => CallOutcome::Cancelled,
        (outcome, None) => outcome,
    }
}

/// Why the engine asked an action to end.
pub(crate) struct Interruption {
    pub(crate) outcome: Outcome,
    pub(crate) failure: Failure,
}

pub(crate) fn interruption(cause: Option<&Cause>) -> Interruption {
    let kind = cause.map_or(FailureKind::CancelledError, Cause::kind);
    let outcome = if matches!(cause, Some(Cause::TimedOut { .. })) {
        Outcome::TimedOut
    } else {
        Outcome::Cancelled
    };
    let message = cause.map_or_else(|| "cancelled".to_owned(), ToString::to_string);
    Interruption {
        outcome,
        failure: Failure::new(kind, message),
    }
}

/// Writes the end of a run into its report line.
pub(crate) fn settle(line: &mut ActionReport, end: RunResult, interruption: Option<&Interruption>) {
    match (end, interruption) {
        // An output means that the action did its work, so it is `completed` even if it was asked to end. Only a
        // timeout makes it `timed_out`; the output is kept.
        (RunResult::Reported(Completion::Output(output)) | RunResult::Shown { output, .. }, None) => {
            line.outcome = Outcome::Completed;
            line.output = Some(output);
        }
        (RunResult::Reported(Completion::Output(output)) | RunResult::Shown { output, .. }, Some(why)) => {
            line.output = Some(output);
            line.outcome = if why.outcome == Outcome::TimedOut {
                Outcome::TimedOut
            } else {
                Outcome::Completed
            };
            line.error = (line.outcome == Outcome::TimedOut).then(|| why.failure.clone());
        }
        (RunResult::Reported(Completion::Error(failure)), None)
        | (RunResult::Lost(failure) | RunResult::NeverBegun(failure), _) => {
            line.outcome = Outcome::Failed;
            line.error = Some(failure);
        }
        (RunResult::Reported(Completion::Error(_)) | RunResult::Cancelled, Some(why)) => {
            line.outcome = why.outcome;
            line.error = Some(why.failure.clone());
        }
        (RunResult::Cancelled, None) => {
            line.outcome = Outcome::Cancelled;
            line.error = Some(Failure::new(FailureKind::CancelledError, "the toolbox ended it"));
        }
    }
}

pub(crate) fn abandon(line: &mut ActionReport, why: &Interruption, grace: Duration) {
    line.outcome = Outcome::Abandoned;
    let message = format!(
        "{}; the toolbox did not report its end within {} ms after the cancel",
        why.failure.message,
        grace.as_millis()
    );
    line.error = Some(Failure::new(why.failure.kind.clone(), message));
}

pub(crate) fn line(action: &PlannedAction) -> ActionReport {
    ActionReport {
        id: action.id.clone(),
        name: action.name.clone(),
        subsystems: action.subsystems.clone(),
        wave: action.wave,
        outcome: Outcome::Skipped,
        duration_ms: 0,
        output: None,
        error: None,
    }
}

pub(crate) fn skipped(action: &PlannedAction, because: Option<&str>) -> ActionReport {
    let mut line = line(action);
    let because = because.unwrap_or("an action before it");
    line.error = Some(Failure::new(
        FailureKind::SkippedError,
        format!("not started, because `{because}` did not complete"),
    ));
    line
}

pub(crate) fn cancelled(action: &PlannedAction, cause: Option<&Cause>) -> ActionReport {
    let mut line = line(action);
    line.outcome = Outcome::Cancelled;
    line.error = Some(interruption(cause).failure);
    line
}
