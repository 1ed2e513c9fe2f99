//! One action that another machine starts, as the engine of this host runs it: a call whose plan has this action alone.
//!
//! The other machine has planned, and makes the result; here the engine cancels, halts, latches and counts as it does for calls of
//! its own. Read [`RemoteActions`].

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{Object, Outcome, Report, Start};
use parking_lot::Mutex;
use protocol::{Raw, RunEnd};
use serde_json::Value;

use engine::{CallEnd, Cause, Halt, NoAnswer, ProgressSink, RunId, RunResult, Toolbox};
use host::Hosted;
use ovos_toolbox_wire::{Failure, FailureKind};

/// A toolbox of this host, for actions of other machines.
pub(super) struct RemoteActions {
    pub(super) toolbox: Arc<Hosted>,
    coming: Mutex<HashMap<String, Coming>>,
}

/// What the engine does not know of an action that is about to start.
pub(super) struct Coming {
    /// The outputs of the actions that it depends on; these ran as calls of their own.
    pub(super) inputs: Object,
    /// Where its progress goes.
    pub(super) progress: Option<ProgressSink>,
}

impl RemoteActions {
    pub(super) fn new(toolbox: Arc<Hosted>) -> Self {
        Self {
            toolbox,
            coming: Mutex::default(),
        }
    }

    /// Notes what belongs to a call that is about to be run.
    pub(super) fn expect(&self, call_id: &str, coming: Coming) {
        self.coming.lock().insert(call_id.to_owned(), coming);
    }

    /// Forgets it.
    pub(super) fn forget(&self, call_id: &str) {
        self.coming.lock().remove(call_id);
    }
}

impl Toolbox for RemoteActions {
    fn start(
        &self,
        run: RunId,
        mut start: Start,
        _progress: Option<ProgressSink>,
    ) -> BoxFuture<'static, RunResult> {
        let coming = self.coming.lock().remove(&start.call.call_id);
        let mut progress = None;
        if let Some(coming) = coming {
            start.inputs = coming.inputs;
            progress = coming.progress;
        }
        self.toolbox.start(run, start, progress)
    }

    fn cancel(&self, run: RunId) {
        self.toolbox.cancel(run);
    }

    fn halt(&self, halt: Halt) -> BoxFuture<'static, Result<(), NoAnswer>> {
        self.toolbox.halt(halt)
    }

    fn resume(&self) -> BoxFuture<'static, Result<(), NoAnswer>> {
        self.toolbox.resume()
    }
}

/// What the other machine is told of the end of an action; and the content beside its output, as the toolbox gave it.
pub(super) fn end_of(end: CallEnd) -> (RunEnd, Vec<Value>) {
    match end {
        CallEnd::Refused(refusal) => {
            let kind = match &refusal {
                engine::Refusal::Ended(cause) => cause.kind(),
                engine::Refusal::Latched { .. } => FailureKind::EmergencyStop,
                engine::Refusal::NeverBegun(failure) | engine::Refusal::PlanFailed(failure) => {
                    return (RunEnd::Error(Raw::of(failure)), Vec::new());
                }
                engine::Refusal::Plan(_) => FailureKind::PlanError,
                engine::Refusal::NotRecorded { .. } | engine::Refusal::RecordTooLong { .. } => {
                    FailureKind::StateError
                }
                engine::Refusal::WaitTooLong { .. } | engine::Refusal::TurnTooLong { .. } => {
                    FailureKind::TimeoutError
                }
                _ => FailureKind::BusyError,
            };
            let failure = Failure::new(kind, refusal.to_string());
            (RunEnd::Error(Raw::of(&failure)), Vec::new())
        }
        CallEnd::Ran {
            report,
            content,
            cause,
            ..
        } => (of_report(report, cause), content),
    }
}

fn of_report(report: Report, cause: Option<Cause>) -> RunEnd {
    let Some(line) = report.actions.into_iter().next() else {
        let nothing = Failure::new(FailureKind::InternalError, "the host lost the run");
        return RunEnd::Error(Raw::of(&nothing));
    };
    let failure = |kind| {
        let text = cause.map_or_else(|| "it did not complete".to_owned(), |cause| cause.to_string());
        line.error.clone().unwrap_or_else(|| Failure::new(kind, text))
    };
    match line.outcome {
        Outcome::Completed => RunEnd::Output(Raw::of(&line.output.unwrap_or_default())),
        // With its reason: the other side knows by itself whether it asked for that.
        Outcome::Cancelled => RunEnd::Error(Raw::of(&failure(FailureKind::CancelledError))),
        Outcome::TimedOut | Outcome::Abandoned => RunEnd::Error(Raw::of(&failure(FailureKind::TimeoutError))),
        Outcome::Failed | Outcome::Skipped => RunEnd::Error(Raw::of(&failure(FailureKind::RuntimeError))),
    }
}
