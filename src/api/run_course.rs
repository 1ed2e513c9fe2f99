//! The course of a run: starts the steps, ends the run, and reports the result of each step. Read [`Run::drive`].

use std::collections::BTreeMap;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use ovos_toolbox_wire::{CallOutcome, FailureKind, Object};
use serde_json::Value;
use tokio::time::interval;

use super::error::WireError;
use super::invoke::CallResult;
use super::memory_budget::MemoryBudget;
use super::request::{InRun, Request};
use super::state::Api;
use super::steps::{Step, Steps};
use crate::registry::Tool;
use client::payload::{CallOptions, RunStatus, RunStepReport, failure_key};
use engine::{CallControl, CallLookup, Cause, Phase, Refusal, TableEntry};

/// How often the run checks whether one of its toolboxes was stopped. A running step is ended by the stop itself.
const LOOK: Duration = Duration::from_millis(50);

/// The result of a run.
pub(super) struct FinishedRun {
    pub(super) steps: Vec<RunStepReport>,
    /// What ended the run; `None` if every step completed.
    pub(super) error: Option<WireError>,
}

/// Why no further step begins.
struct End {
    /// The reason in the reports of the steps that do not begin.
    reason: String,
    error: WireError,
}

/// A run that is under way.
pub(super) struct Run<'a> {
    pub(super) api: &'a Arc<Api>,
    pub(super) request: &'a Request,
    pub(super) options: &'a CallOptions,
    pub(super) run_id: &'a str,
    pub(super) entry: &'a TableEntry<'a>,
    /// The number of emergency stops of each toolbox when the run began.
    pub(super) epochs: BTreeMap<String, u64>,
    /// The tools of the steps, as they were checked.
    pub(super) tools: &'a [Arc<Tool>],
    /// Which steps have begun.
    pub(super) begun: Vec<AtomicBool>,
    /// Whether a step did not complete; then no further step begins.
    pub(super) over: AtomicBool,
}

/// A step that ended: its index, its request, and its result; `None` if the run ended before the step began.
type Ended = (usize, Request, Option<CallResult>);

impl Run<'_> {
    /// Makes the call of each step as soon as the steps that it waits for have completed, until all steps have
    /// completed or something ends the run. If a step fails, waits for the steps that run at that moment.
    pub(super) async fn drive(&self, steps: &mut Steps) -> FinishedRun {
        let count = steps.all().len();
        let mut reports: Vec<Option<RunStepReport>> = (0..count).map(|_| None).collect();
        let mut waiting: Vec<usize> = (0..count).collect();
        let mut running: FuturesUnordered<BoxFuture<'_, Ended>> = FuturesUnordered::new();
        let mut end: Option<End> = None;
        let mut ended = pin!(self.entry.wait_for(pending::<()>()));
        let mut was_ended = false;
        // Results that do not fit are left out, because the answer would be too large for the bus.
        let mut room = MemoryBudget::new(self.api.settings.max_answer_bytes);
        let mut look = interval(LOOK);
        loop {
            for index in std::mem::take(&mut waiting) {
                let completed = |&before: &usize| {
                    let report: &Option<RunStepReport> = &reports[before];
                    report
                        .as_ref()
                        .is_some_and(|report| report.status == RunStatus::Completed)
                };
                let step = &steps.all()[index];
                if end.is_some() || !step.waits_for.iter().all(completed) {
                    waiting.push(index);
                    continue;
                }
                match steps.arguments(index) {
                    Ok(args) => {
                        let step = self.step_request(&steps.all()[index], args);
                        running.push(Box::pin(self.step(index, step)));
                    }
                    Err(missing) => {
                        let step = &steps.all()[index];
                        let result = CallResult::refused(WireError::new(FailureKind::ValueError, missing));
                        let report = self.report(step, &Object::new(), result, &mut end);
                        reports[index] = Some(report);
                    }
                }
            }
            if running.is_empty() {
                break;
            }
            if let Some(end) = &end {
                self.end_waiting(steps, &reports, &end.reason);
            }
            tokio::select! {
                biased;
                refusal = &mut ended, if !was_ended => {
                    was_ended = true;
                    if let Err(Refusal::Ended(cause)) = refusal {
                        self.end_all(&cause, steps, &reports);
                        end.get_or_insert_with(|| self.end_of(&cause));
                    }
                }
                Some((index, step, result)) = running.next() => {
                    let Some(result) = result else {
                        end = end.or_else(|| self.ended());
                        waiting.push(index);
                        continue;
                    };
                    let mut report = self.report(&steps.all()[index], &step.data, result, &mut end);
                    if let Some(result) = &report.result {
                        steps.give(index, result);
                        if !room.takes_value(result) {
                            report.result = None;
                            report.result_left_out =
                                Some("the results of the run are larger than an answer may be".to_owned());
                        }
                    }
                    reports[index] = Some(report);
                }
                // Finds a stop of a toolbox that has no running step.
                _ = look.tick(), if end.is_none() => end = self.ended(),
            }
        }
        let reason = end.as_ref().map_or("", |end| end.reason.as_str());
        let report = |(step, report): (&Step, Option<RunStepReport>)| {
            report.unwrap_or_else(|| not_started(report_of(step), reason))
        };
        FinishedRun {
            steps: steps.all().iter().zip(reports).map(report).collect(),
            error: end.map(|end| end.error),
        }
    }

    /// The request of a step that begins now.
    fn step_request(&self, step: &Step, args: Value) -> Request {
        let mut data = step.named();
        data.insert("args".to_owned(), args);
        data.insert("call_id".to_owned(), Value::from(self.call_id_of(step)));
        for (key, wanted) in [
            ("progress", self.options.progress),
            ("detail", self.options.detail),
        ] {
            if wanted {
                data.insert(key.to_owned(), Value::Bool(true));
            }
        }
        if self.options.content.is_some() {
            data.insert("content".to_owned(), Value::from("path"));
        }
        let in_run = InRun {
            run_id: self.run_id.to_owned(),
            id: step.id.clone(),
            received: self.request.received,
            takes_values: step.takes_values(),
        };
        Request {
            step: Some(in_run),
            ..Request::new(self.request.head.clone(), data, Instant::now())
        }
    }

    fn call_id_of(&self, step: &Step) -> String {
        format!("{}:{}", self.run_id, step.id)
    }

    /// Makes the call of a step, unless the run has ended.
    async fn step(&self, index: usize, step: Request) -> Ended {
        // There is no await between this check and the step's entry in the table of calls, where the end of the run
        // finds the step.
        if self.over.load(Ordering::SeqCst) || self.ended().is_some() {
            return (index, step, None);
        }
        self.begun[index].store(true, Ordering::SeqCst);
        let found = self.api.resolve(&step.data);
        let found = found.and_then(|found| self.as_checked(index, found));
        let result = self.api.make_call(&step, found, "args").await;
        (index, step, Some(result))
    }

    /// The tools that the name of a step refers to now; an error if that is another tool than the one that was checked
    /// when the run began.
    fn as_checked(&self, index: usize, found: Vec<Arc<Tool>>) -> Result<Vec<Arc<Tool>>, WireError> {
        let (tool, now) = (&self.tools[index], found.last());
        let same = now.is_some_and(|now| now.toolbox_id == tool.toolbox_id && now.effect() == tool.effect());
        if same {
            return Ok(found);
        }
        let text = format!(
            "'{}' now means another tool than when the run began: start the run again",
            tool.name()
        );
        Err(WireError::new(FailureKind::ToolboxError, text))
    }

    /// Why no further step may begin, independent of the results of the steps.
    fn ended(&self) -> Option<End> {
        if let Some(cause) = self.entry.control().cause() {
            return Some(self.end_of(&cause));
        }
        // The latch alone is not enough: it would not refuse a step of another toolbox, and the stop may be lifted
        // before the next step begins.
        let stopped = |(id, epoch): &(&String, &u64)| self.api.engine.stop_epoch(id) != **epoch;
        let (toolbox_id, _) = self.epochs.iter().find(stopped)?;
        let reason = format!("toolbox '{toolbox_id}' was stopped during the run");
        Some(End {
            error: WireError {
                outcome: Some(CallOutcome::Stopped),
                ..WireError::new(FailureKind::EmergencyStop, &reason)
            },
            reason,
        })
    }

    fn end_of(&self, cause: &Cause) -> End {
        End {
            reason: format!("the run was ended: {cause}"),
            error: WireError::ended(cause),
        }
    }

    /// Ends the run and the steps that are under way.
    fn end_all(&self, cause: &Cause, steps: &Steps, reports: &[Option<RunStepReport>]) {
        // If the time of the run is up, nothing else has ended it yet.
        self.entry.control().end(cause.clone());
        for control in self.under_way(steps, reports) {
            control.end(cause.clone());
        }
    }

    /// Ends the steps that wait for their subsystems, or for their plan: they have not begun to move anything.
    fn end_waiting(&self, steps: &Steps, reports: &[Option<RunStepReport>], why: &str) {
        for control in self.under_way(steps, reports) {
            if control.phase() != Phase::Running {
                let by = format!("its run: {why}");
                control.end(Cause::Cancelled { by });
            }
        }
    }

    /// The calls of the steps that have begun and not ended.
    fn under_way(&self, steps: &Steps, reports: &[Option<RunStepReport>]) -> Vec<Arc<CallControl>> {
        let counts = self.begun.iter().map(|begun| begun.load(Ordering::SeqCst));
        let steps = steps.all().iter().zip(reports).zip(counts);
        let open = steps.filter(|((_, report), counts)| report.is_none() && *counts);
        let calls = open.filter_map(
            |((step, _), _)| match self.api.engine.find(&self.call_id_of(step)) {
                CallLookup::InFlight(control) => Some(control),
                _ => None,
            },
        );
        calls.collect()
    }

    /// The report of a step that ended. A step that did not complete ends the run, unless the run has ended already.
    fn report(
        &self,
        step: &Step,
        data: &Object,
        call_result: CallResult,
        end: &mut Option<End>,
    ) -> RunStepReport {
        let status = status(&call_result);
        if status != RunStatus::Completed {
            self.over.store(true, Ordering::SeqCst);
            end.get_or_insert_with(|| self.end_by(step, &status, &call_result));
        }
        let began = !data.is_empty();
        let mut report = RunStepReport {
            status,
            call_id: began.then(|| self.call_id_of(step)),
            content: call_result.gathered.content,
            content_refused: call_result.gathered.refused,
            ignored: if self.options.detail {
                call_result.ignored
            } else {
                Vec::new()
            },
            ..report_of(step)
        };
        match call_result.result {
            Ok(result) => report.result = Some(result),
            Err(error) => {
                report.error_detail = self.options.detail.then_some(*error.detail);
                report.error = Some(error.text);
                if let Some(confirm) = error.confirm {
                    report.args = data.get("args").cloned();
                    report.confirm = Some(*confirm);
                }
            }
        }
        report
    }

    fn end_by(&self, step: &Step, status: &RunStatus, result: &CallResult) -> End {
        let what = match status {
            RunStatus::TimedOut => "timed out",
            RunStatus::Cancelled => "was cancelled",
            RunStatus::Stopped => "was stopped",
            RunStatus::ConfirmationRequired => "needs a confirmation: call it by itself",
            _ => "failed",
        };
        let reason = format!("step '{}' {what}", step.id);
        let error = match &result.result {
            Err(error) => error.of_step(&step.id),
            Ok(_) => {
                let kind = match status {
                    RunStatus::TimedOut => FailureKind::TimeoutError,
                    RunStatus::Cancelled => FailureKind::CancelledError,
                    RunStatus::Stopped => FailureKind::EmergencyStop,
                    _ => FailureKind::RuntimeError,
                };
                WireError::new(kind, format!("{reason}: its result says more"))
            }
        };
        let outcome = match status {
            RunStatus::TimedOut => CallOutcome::TimedOut,
            RunStatus::Cancelled => CallOutcome::Cancelled,
            RunStatus::Stopped => CallOutcome::Stopped,
            _ => CallOutcome::Failed,
        };
        End {
            reason,
            error: WireError {
                outcome: Some(outcome),
                ..error
            },
        }
    }
}

fn status(result: &CallResult) -> RunStatus {
    let outcome = match &result.result {
        Err(error) if error.confirm.is_some() => return RunStatus::ConfirmationRequired,
        Err(error) => result.outcome.or(error.outcome),
        Ok(_) => result.outcome,
    };
    match outcome {
        Some(CallOutcome::TimedOut) => RunStatus::TimedOut,
        Some(CallOutcome::Cancelled) => RunStatus::Cancelled,
        Some(CallOutcome::Stopped) => RunStatus::Stopped,
        Some(CallOutcome::Failed) => RunStatus::Failed,
        Some(CallOutcome::Completed) | None => match &result.result {
            Ok(result) if failure_key(result).is_none() => RunStatus::Completed,
            _ => RunStatus::Failed,
        },
    }
}

fn report_of(step: &Step) -> RunStepReport {
    RunStepReport {
        id: step.id.clone(),
        name: step.name.clone(),
        ..RunStepReport::default()
    }
}

pub(super) fn not_started(report: RunStepReport, reason: &str) -> RunStepReport {
    RunStepReport {
        status: RunStatus::NotStarted,
        reason: Some(reason.to_owned()),
        ..report
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_step_has_completed_only_if_its_outcome_and_its_result_say_so() {
        let completed = Some(CallOutcome::Completed);
        let failed = || Err(WireError::new("RuntimeError", "no"));
        for (result, outcome, expected) in [
            (Ok(json!({"x": 1})), completed, RunStatus::Completed),
            (
                Ok(json!({"ok": true, "success": 0})),
                completed,
                RunStatus::Completed,
            ),
            (Ok(json!({"ok": false})), completed, RunStatus::Failed),
            (Ok(json!({"success": false})), completed, RunStatus::Failed),
            (
                Ok(json!({"success": true})),
                Some(CallOutcome::Failed),
                RunStatus::Failed,
            ),
            (Ok(json!({})), Some(CallOutcome::TimedOut), RunStatus::TimedOut),
            (Ok(json!({})), Some(CallOutcome::Cancelled), RunStatus::Cancelled),
            (Ok(json!({})), Some(CallOutcome::Stopped), RunStatus::Stopped),
            // The result violates its schema.
            (failed(), completed, RunStatus::Failed),
            (failed(), None, RunStatus::Failed),
            (failed(), Some(CallOutcome::Cancelled), RunStatus::Cancelled),
            (
                Err(WireError::ended(&Cause::UserStop)),
                None,
                RunStatus::Cancelled,
            ),
        ] {
            let call_result = CallResult {
                result: result.clone(),
                outcome,
                ..CallResult::refused(WireError::missing_name())
            };
            assert_eq!(status(&call_result), expected, "{result:?} {outcome:?}");
        }
    }
}
