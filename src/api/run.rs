//! `ovos.tools.run`: several calls as one request, in which later ones may take values from the results of earlier ones.
//!
//! A run stands in the table of calls, so that a cancel, a user's stop, a lost bus, a door that is gone and the shutdown find
//! it. It holds nothing. Its steps are calls like any other, each made by [`Api::came`] when its arguments are known. Read
//! [`Api::run_steps`], then [`Run::drive`].

use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use ovos_toolbox_wire::{CallOutcome, Effect, Object};
use serde_json::{Value, json};

use super::asking::{Asking, Room};
use super::error::WireError;
use super::invoke::Came;
use super::request::{call_id, call_options, steps_of};
use super::steps::{Step, Steps};
use super::{Api, InRun, Request};
use crate::registry::Tool;
use client::payload::{CallOptions, ContentMode, RunResponse, RunStatus, RunStepReport};
use engine::{Cause, Known, Place, Refusal};

/// How a run is listed among the calls: no toolbox has this id.
const TOOLBOX: &str = "service";
const TOOL: &str = "run";

/// The longest call_id, in bytes.
const LONGEST_CALL_ID: usize = 128;

impl Api {
    pub(super) async fn run_steps(self: &Arc<Self>, request: &Request) -> RunResponse {
        let mut asking = Asking::new(request);
        let stops = self.stops_among(&request.data);
        let ran = if stops.is_empty() {
            self.checked_and_run(request, &mut asking).await
        } else {
            Ok(self.stop_instead(request, &stops).await)
        };
        let (steps, error) = match ran {
            Ok(Ran { steps, error }) => (steps, error),
            Err(error) => (Vec::new(), Some(error)),
        };
        // Each step is a call with an answer of its own; of the run only says how far it came.
        let completed = steps.iter().filter(|step| step.status == RunStatus::Completed);
        let completed: Vec<&str> = completed.map(|step| step.id.as_str()).collect();
        let outcome = match &error {
            None => Ok(json!({ "completed": completed })),
            Some(error) => Err(error.clone()),
        };
        asking.answered(self.engine.facts(), &outcome);
        let with_detail = request.data.get("detail") == Some(&Value::Bool(true));
        let detailed = error.as_ref().filter(|_| with_detail);
        RunResponse {
            call_id: call_id(&request.data).unwrap_or_default(),
            ok: error.is_none(),
            error_detail: detailed.map(|error| (*error.detail).clone()),
            error: error.map(|error| error.text),
            steps,
        }
    }

    /// Reads the steps in the data of a request and looks up their tools.
    ///
    /// # Errors
    /// The first thing that is wrong; then nothing of the run may happen.
    pub(super) fn checked_steps(&self, data: &Object) -> Result<(Steps, Vec<Arc<Tool>>), WireError> {
        let steps = Steps::read(data).map_err(|invalid| WireError::new("ValueError", invalid))?;
        let mut tools = Vec::with_capacity(steps.all().len());
        for step in steps.all() {
            let found = self.resolve(&named(step));
            let tool = found.and_then(|(_, mut tools)| tools.pop().ok_or_else(WireError::missing_name));
            let tool = tool.map_err(|error| error.of_step(&step.id))?;
            if tool.effect() == Effect::Resume {
                let error = format!(
                    "'{}' lifts an emergency stop, which is no step of a run",
                    tool.name()
                );
                return Err(WireError::new("PermissionError", error).of_step(&step.id));
            }
            tools.push(tool);
        }
        Ok((steps, tools))
    }

    /// # Errors
    /// The run is not valid, or not admitted: nothing of it happened.
    async fn checked_and_run(
        self: &Arc<Self>,
        request: &Request,
        asking: &mut Asking,
    ) -> Result<Ran, WireError> {
        let options = call_options(&request.data)?;
        if options.content == Some(ContentMode::Inline) {
            let error =
                "'content' of a run must be \"path\": its steps may have more than one answer carries";
            return Err(WireError::new("ValueError", error));
        }
        let (mut steps, tools) = self.checked_steps(&request.data)?;
        let run_id = options.call_id.clone().unwrap_or_else(|| self.new_call_id());
        let longest = steps
            .all()
            .iter()
            .map(|step| step.id.len())
            .max()
            .unwrap_or_default();
        if run_id.len() + 1 + longest > LONGEST_CALL_ID {
            let error = format!(
                "'call_id' and the longest id of a step must have at most {} characters together: a step has the call_id \
                 CALL_ID:ID",
                LONGEST_CALL_ID - 1
            );
            return Err(WireError::new("ValueError", error));
        }
        let facts = self.engine.facts();
        let effect = effect_of(&tools);
        let call = facts.received(&run_id, TOOLBOX, TOOL, effect, asking.asked.clone());
        asking.call = Some(call.clone());
        let place = self.engine.enter(&engine::CallRequest {
            call_id: run_id.clone(),
            toolbox_id: TOOLBOX.to_owned(),
            generation: 0,
            tool: TOOL.to_owned(),
            effect,
            action_timeout: None,
            args: Object::new(),
            session_id: request.head.session_id().map(str::to_owned),
            lang: None,
            source: None,
            operator: false,
            content: false,
            received: request.received,
            timeout: options.timeout(),
            facts: Some(call.clone()),
        });
        let place = place
            .map_err(|refusal| WireError::refused(&refusal))
            .inspect_err(|error| call.refused(&error.text))?;
        place.runs();
        let epoch = |tool: &Arc<Tool>| (tool.toolbox_id.clone(), self.engine.stop_epoch(&tool.toolbox_id));
        let run = Run {
            api: self,
            request,
            options: &options,
            run_id: &run_id,
            place: &place,
            epochs: tools.iter().map(epoch).collect(),
        };
        let ran = run.drive(&mut steps).await;
        asking.outcome = Some(match &ran.error {
            None => CallOutcome::Completed,
            Some(error) => error.outcome.unwrap_or(CallOutcome::Failed),
        });
        Ok(ran)
    }

    /// A run of which a step is an emergency stop is that stop: it does not wait for other steps, and is not refused whatever
    /// else is wrong with the run. No step begins.
    async fn stop_instead(self: &Arc<Self>, request: &Request, stops: &[Arc<Tool>]) -> Ran {
        // All latches and halts are on their way before the first await.
        let result = self.run_stop(stops).await;
        let stops = |step: &Object| {
            let found = self.resolve(step);
            found.is_ok_and(|(_, tools)| tools.iter().any(|tool| tool.effect() == Effect::Stop))
        };
        let mut steps = Vec::new();
        for step in steps_of(&request.data).take(super::steps::MOST_STEPS) {
            let text = |key: &str| {
                step.get(key)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let report = RunStepReport {
                id: text("id"),
                name: text("name"),
                ..RunStepReport::default()
            };
            steps.push(if stops(step) {
                RunStepReport {
                    status: RunStatus::Completed,
                    result: Some(result.clone()),
                    ..report
                }
            } else {
                not_started(report, "a step of the run is an emergency stop")
            });
        }
        let error =
            "a step of the run is an emergency stop: it was carried out at once, and nothing else was";
        let all_stop = steps.iter().all(|step| step.status == RunStatus::Completed);
        Ran {
            error: (!all_stop).then(|| WireError::new("EmergencyStop", error)),
            steps,
        }
    }
}

/// What a run came to.
struct Ran {
    steps: Vec<RunStepReport>,
    /// What ended it; `None` where every step completed.
    error: Option<WireError>,
}

/// Why no further step begins.
struct End {
    /// As it stands beside the steps that do not begin.
    reason: String,
    error: WireError,
}

/// A run that is under way.
struct Run<'a> {
    api: &'a Arc<Api>,
    request: &'a Request,
    options: &'a CallOptions,
    run_id: &'a str,
    place: &'a Place<'a>,
    /// The number of emergency stops of each toolbox when the run began.
    epochs: BTreeMap<String, u64>,
}

/// A step that ended: its index, its request, and what came of it; nothing where the run ended before the step began.
type Ended = (usize, Request, Option<Came>);

impl Run<'_> {
    /// Makes the calls, each as soon as the steps that it waits for have completed, until all have or something ends the run.
    /// Steps that run when another one fails are waited for.
    async fn drive(&self, steps: &mut Steps) -> Ran {
        let count = steps.all().len();
        let mut reports: Vec<Option<RunStepReport>> = (0..count).map(|_| None).collect();
        let mut waiting: VecDeque<usize> = (0..count).collect();
        let mut running: FuturesUnordered<BoxFuture<'_, Ended>> = FuturesUnordered::new();
        let mut end: Option<End> = None;
        let mut ended = pin!(self.place.wait_for(pending::<()>()));
        let mut was_ended = false;
        // Beyond it the answer would be too large for the bus.
        let mut room = Room::new(self.api.settings.max_answer_bytes);
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
                    waiting.push_back(index);
                    continue;
                }
                match steps.arguments(index) {
                    Ok(args) => {
                        let step = self.step_request(&steps.all()[index], args);
                        running.push(Box::pin(self.step(index, step)));
                    }
                    Err(missing) => {
                        let step = &steps.all()[index];
                        let came = Came::refused(WireError::new("ValueError", missing));
                        let report = self.report(step, &Object::new(), came, &mut end);
                        reports[index] = Some(report);
                    }
                }
            }
            if running.is_empty() {
                break;
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
                Some((index, step, came)) = running.next() => {
                    let Some(came) = came else {
                        end = end.or_else(|| self.ended());
                        waiting.push_back(index);
                        continue;
                    };
                    let mut report = self.report(&steps.all()[index], &step.data, came, &mut end);
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
            }
        }
        let reason = end.as_ref().map_or("", |end| end.reason.as_str());
        let report = |(step, report): (&Step, Option<RunStepReport>)| {
            report.unwrap_or_else(|| not_started(report_of(step), reason))
        };
        Ran {
            steps: steps.all().iter().zip(reports).map(report).collect(),
            error: end.map(|end| end.error),
        }
    }

    /// The request of a step that begins now.
    fn step_request(&self, step: &Step, args: Value) -> Request {
        let mut data = named(step);
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
        // Nothing is awaited between this look and the step's place in the table of calls, where the end of the run finds it.
        if self.ended().is_some() {
            return (index, step, None);
        }
        let found = self.api.resolve(&step.data).map(|(_, tools)| tools);
        let came = self.api.came(&step, found, "args").await;
        (index, step, Some(came))
    }

    /// Why no further step may begin, whatever became of the steps.
    fn ended(&self) -> Option<End> {
        if let Some(cause) = self.place.control().cause() {
            return Some(self.end_of(&cause));
        }
        // A step of another toolbox would not be refused, and a stop may be lifted before the next step begins.
        let stopped = |(id, epoch): &(&String, &u64)| self.api.engine.stop_epoch(id) != **epoch;
        let (toolbox_id, _) = self.epochs.iter().find(stopped)?;
        let reason = format!("toolbox '{toolbox_id}' was stopped during the run");
        Some(End {
            error: WireError {
                outcome: Some(CallOutcome::Stopped),
                ..WireError::new("EmergencyStop", &reason)
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
        // Where its time is up, nothing else has ended it.
        self.place.control().end(cause.clone());
        for (step, report) in steps.all().iter().zip(reports) {
            if report.is_none()
                && let Known::InFlight(control) = self.api.engine.find(&self.call_id_of(step))
            {
                control.end(cause.clone());
            }
        }
    }

    /// What became of a step that began. A step that did not complete ends the run, unless that has ended already.
    fn report(&self, step: &Step, data: &Object, came: Came, end: &mut Option<End>) -> RunStepReport {
        let status = status(&came);
        if status != RunStatus::Completed {
            end.get_or_insert_with(|| self.end_by(step, &status, &came));
        }
        let began = !data.is_empty();
        let mut report = RunStepReport {
            status,
            call_id: began.then(|| self.call_id_of(step)),
            content: came.gathered.content,
            content_refused: came.gathered.refused,
            ..report_of(step)
        };
        match came.result {
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

    fn end_by(&self, step: &Step, status: &RunStatus, came: &Came) -> End {
        let what = match status {
            RunStatus::TimedOut => "was not done in time",
            RunStatus::Cancelled => "was cancelled",
            RunStatus::Stopped => "was stopped",
            RunStatus::ConfirmationRequired => "has to be confirmed",
            _ => "failed",
        };
        let reason = format!("step '{}' {what}", step.id);
        let error = match &came.result {
            Err(error) => error.of_step(&step.id),
            Ok(_) => {
                let kind = match status {
                    RunStatus::TimedOut => "TimeoutError",
                    RunStatus::Cancelled => "CancelledError",
                    RunStatus::Stopped => "EmergencyStop",
                    _ => "RuntimeError",
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

/// The name of a step's tool, as a request has it.
pub(super) fn named(step: &Step) -> Object {
    let mut data = Object::new();
    data.insert("name".to_owned(), Value::from(step.name.as_str()));
    if let Some(toolbox_id) = &step.toolbox_id {
        data.insert("toolbox_id".to_owned(), Value::from(toolbox_id.as_str()));
    }
    data
}

/// The effect of a run, for what ends the calls that move something. It is never `safe`: such a call would outlive its own
/// cancel, and the steps decide for themselves.
fn effect_of(tools: &[Arc<Tool>]) -> Effect {
    let has = |effect| tools.iter().any(|tool| tool.effect() == effect);
    if has(Effect::Motion) {
        Effect::Motion
    } else if tools.iter().all(|tool| tool.effect() == Effect::Read) {
        Effect::Read
    } else {
        Effect::Write
    }
}

fn status(came: &Came) -> RunStatus {
    let says_no = |result: &Value| {
        let is_false = |key: &str| result.get(key) == Some(&Value::Bool(false));
        is_false("ok") || is_false("success")
    };
    let outcome = match &came.result {
        Err(error) if error.confirm.is_some() => return RunStatus::ConfirmationRequired,
        Err(error) => came.outcome.or(error.outcome),
        Ok(_) => came.outcome,
    };
    match outcome {
        Some(CallOutcome::TimedOut) => RunStatus::TimedOut,
        Some(CallOutcome::Cancelled) => RunStatus::Cancelled,
        Some(CallOutcome::Stopped) => RunStatus::Stopped,
        Some(CallOutcome::Failed) => RunStatus::Failed,
        Some(CallOutcome::Completed) | None => match &came.result {
            Ok(result) if !says_no(result) => RunStatus::Completed,
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

fn not_started(report: RunStepReport, reason: &str) -> RunStepReport {
    RunStepReport {
        status: RunStatus::NotStarted,
        reason: Some(reason.to_owned()),
        ..report
    }
}

#[cfg(test)]
mod tests {
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
            // Its result is not what its schema says.
            (failed(), completed, RunStatus::Failed),
            (failed(), None, RunStatus::Failed),
            (failed(), Some(CallOutcome::Cancelled), RunStatus::Cancelled),
            (
                Err(WireError::ended(&Cause::UserStop)),
                None,
                RunStatus::Cancelled,
            ),
        ] {
            let came = Came {
                result: result.clone(),
                outcome,
                ..Came::refused(WireError::missing_name())
            };
            assert_eq!(status(&came), expected, "{result:?} {outcome:?}");
        }
    }
}
