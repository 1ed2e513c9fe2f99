//! `ovos.tools.run`: several calls as one request, in which later ones may take values from the results of earlier ones.
//!
//! A run has an entry in the table of calls, so that a cancel, a user's stop, a lost bus, a lost door and the shutdown
//! find it. It holds no subsystems. Its steps are ordinary calls; [`Api::make_call`] makes each of them when its arguments
//! are known. Read [`Api::run_steps`], then [`super::run_course`].

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ovos_toolbox_wire::{CallOutcome, Effect, FailureKind, Object};
use serde_json::{Value, json};

use super::error::WireError;
use super::keys::{call_options, steps_of};
use super::record::RequestRecord;
use super::request::Request;
use super::run_course::{FinishedRun, Run, not_started};
use super::state::Api;
use super::steps::{MOST_STEPS, Steps};
use crate::registry::Tool;
use client::payload::{ContentMode, RunResponse, RunStatus, RunStepReport, failure_key};

/// The toolbox and tool under which a run is listed among the calls; no toolbox has this id.
const TOOLBOX: &str = "service";
const TOOL: &str = "run";

/// The longest call_id, in bytes.
const LONGEST_CALL_ID: usize = 128;

impl Api {
    pub(super) async fn run_steps(self: &Arc<Self>, request: &Request) -> RunResponse {
        let mut record = RequestRecord::new(request, self.engine.facts(), &self.settings.hidden_arguments);
        let stops = self.stops_among(&request.data);
        let ran = if stops.is_empty() {
            self.checked_and_run(request, &mut record).await
        } else {
            Ok(self.stop_instead(request, &stops).await)
        };
        let (steps, error) = match ran {
            Ok(FinishedRun { steps, error }) => (steps, error),
            Err(error) => (Vec::new(), Some(error)),
        };
        // Each step is a call with an answer of its own, so the answer of the run has only the steps that completed.
        let completed = steps.iter().filter(|step| step.status == RunStatus::Completed);
        let completed: Vec<&str> = completed.map(|step| step.id.as_str()).collect();
        let outcome = match &error {
            None => Ok(json!({ "completed": completed })),
            Some(error) => Err(error.clone()),
        };
        let unread = record.call.is_none();
        let named = if unread {
            self.named_tools(request)
        } else {
            Vec::new()
        };
        record.answered(&outcome, &named);
        let with_detail = request.data.get("detail") == Some(&Value::Bool(true));
        let detailed = error.as_ref().filter(|_| with_detail);
        RunResponse {
            // As in every answer, `Api::answer` adds it.
            call_id: None,
            ok: error.is_none(),
            error_detail: detailed.map(|error| (*error.detail).clone()),
            error: error.map(|error| error.text),
            steps,
        }
    }

    /// The tools that the steps of a request name, as far as they can be found.
    fn named_tools(&self, request: &Request) -> Vec<Arc<Tool>> {
        let steps = steps_of(&request.data).take(MOST_STEPS);
        steps
            .flat_map(|step| self.resolve(step).unwrap_or_default())
            .collect()
    }

    /// Reads the steps in the data of a request and looks up their tools.
    ///
    /// # Errors
    /// The first problem; then nothing of the run may happen.
    pub(super) fn checked_steps(&self, data: &Object) -> Result<(Steps, Vec<Arc<Tool>>), WireError> {
        let steps = Steps::read(data).map_err(|invalid| WireError::new(FailureKind::ValueError, invalid))?;
        let mut tools = Vec::with_capacity(steps.all().len());
        for step in steps.all() {
            let found = self.resolve(&step.named());
            let tool = found.and_then(|mut tools| tools.pop().ok_or_else(WireError::missing_name));
            let tool = tool.map_err(|error| error.of_step(&step.id))?;
            if tool.effect() == Effect::Resume {
                let error = format!(
                    "'{}' lifts an emergency stop and cannot be a step of a run: call it by itself",
                    tool.name()
                );
                return Err(WireError::new(FailureKind::PermissionError, error).of_step(&step.id));
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
        record: &mut RequestRecord<'_>,
    ) -> Result<FinishedRun, WireError> {
        let options = call_options(&request.data)?;
        if options.content == Some(ContentMode::Inline) {
            let error = "'content' must be \"path\" in a run: the content of all its steps may not fit into one answer";
            return Err(WireError::new(FailureKind::ValueError, error));
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
                "'call_id' and the longest step id must not exceed {} characters together: each step gets the call_id CALL_ID:STEP_ID",
                LONGEST_CALL_ID - 1
            );
            return Err(WireError::new(FailureKind::ValueError, error));
        }
        let facts = self.engine.facts();
        let effect = effect_of(&tools);
        let call = facts.received(&run_id, TOOLBOX, TOOL, effect, record.origin(&tools));
        record.call = Some(call.clone());
        let entry = self.engine.enter(&engine::CallRequest {
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
        let entry = entry.map_err(|refusal| WireError::refused(&refusal))?;
        entry.runs();
        let epoch = |tool: &Arc<Tool>| (tool.toolbox_id.clone(), self.engine.stop_epoch(&tool.toolbox_id));
        let run = Run {
            api: self,
            request,
            options: &options,
            run_id: &run_id,
            entry: &entry,
            epochs: tools.iter().map(epoch).collect(),
            begun: tools.iter().map(|_| AtomicBool::new(false)).collect(),
            over: AtomicBool::new(false),
            tools: &tools,
        };
        let watched = (effect == Effect::Motion).then(|| self.engine.expect_motion());
        let ran = run.drive(&mut steps).await;
        drop(watched);
        record.outcome = Some(match &ran.error {
            None => CallOutcome::Completed,
            Some(error) => error.outcome.unwrap_or(CallOutcome::Failed),
        });
        Ok(ran)
    }

    /// Carries out a run that has an emergency stop among its steps, as that stop: it does not wait for other steps,
    /// and is not refused whatever else is wrong with the run. No other step begins.
    async fn stop_instead(self: &Arc<Self>, request: &Request, stops: &[Arc<Tool>]) -> FinishedRun {
        // All latches and halts are on their way before the first await.
        let result = self.run_stop(request, stops).await;
        let stops = |step: &Object| {
            let found = self.resolve(step);
            found.is_ok_and(|tools| tools.iter().any(|tool| tool.effect() == Effect::Stop))
        };
        let unconfirmed = failure_key(&result).is_some();
        let mut steps = Vec::new();
        for step in steps_of(&request.data).take(MOST_STEPS) {
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
                    status: if unconfirmed {
                        RunStatus::Failed
                    } else {
                        RunStatus::Completed
                    },
                    result: Some(result.clone()),
                    ..report
                }
            } else {
                not_started(report, "a step of the run is an emergency stop")
            });
        }
        let error = if unconfirmed {
            "not every toolbox confirmed the emergency stop: its result lists those that did"
        } else {
            "the run contains an emergency stop, so only the stop was carried out"
        };
        let all_stop = steps.iter().all(|step| step.status == RunStatus::Completed);
        FinishedRun {
            error: (!all_stop).then(|| WireError::new(FailureKind::EmergencyStop, error)),
            steps,
        }
    }
}

/// The effect of a run, for the code that ends calls that move something. It is never `safe`: a safe run would survive
/// its own cancel. A running `safe` step still goes on, because it is a call of its own.
fn effect_of(tools: &[Arc<Tool>]) -> Effect {
    let has = |effect| tools.iter().any(|tool| tool.effect() == effect);
    if has(Effect::Motion) || has(Effect::Safe) {
        Effect::Motion
    } else if tools.iter().all(|tool| tool.effect() == Effect::Read) {
        Effect::Read
    } else {
        Effect::Write
    }
}
