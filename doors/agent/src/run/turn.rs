//! Handles one answer of the model: sorts its calls, plans them, and makes them in batches.

use std::sync::Arc;

use client::payload::PlanResponse;
use door::ListedTool;
use door::find::CallTool;
use futures_util::future::join_all;
use ovos_toolbox_wire::{Effect, Object};
use serde_json::{Value, json};

use super::ledger::Run;
use crate::answer::{Answer, ModelCall};
use crate::batch::{Claim, batches};
use crate::budget::{Charge, Usage, Verdict};
use crate::end::{BudgetKind, End};
use crate::hands::{CallResult, planned, waves};
use crate::news::News;
use crate::prompt;
use crate::record::{self, Status};
use crate::state::blanked;
use crate::toolbelt::{Own, Target};

/// A call that is ready to be made.
struct Ready {
    /// The position of the call in the answer.
    at: usize,
    tool: Arc<ListedTool>,
    arguments: Object,
    plan: Option<PlanResponse>,
}

impl Ready {
    fn arguments_value(&self) -> Value {
        Value::Object(self.arguments.clone())
    }

    fn claim(&self) -> Claim {
        let plan = self.plan.as_ref();
        Claim {
            toolbox_id: self.tool.toolbox_id.clone(),
            effect: self.tool.effect,
            subsystems: plan.map_or_else(Vec::new, |plan| plan.subsystems.clone()),
        }
    }

    /// Returns what the call asks of the physical budgets.
    ///
    /// # Errors
    /// The amount cannot be determined.
    fn charge(&self) -> Result<Charge, String> {
        let schema = Value::Object((*self.tool.arguments).clone());
        Charge::of_call(&self.tool.name, &self.arguments_value(), &schema)
    }
}

/// The calls of an answer that should be made, and the tool whose call was refused: no later call is made.
#[derive(Default)]
struct PreparedCalls {
    ready: Vec<Ready>,
    refused: Option<String>,
}

impl Run<'_> {
    /// Does what an answer asks for, as far as it is permitted.
    pub(super) async fn act(&mut self, answer: &Answer) -> (Vec<record::Call>, Option<End>) {
        if answer.calls.is_empty() {
            self.used.count_outcome(true);
            self.messages.push(prompt::user(prompt::NO_CALL));
            return (Vec::new(), None);
        }
        let mut lines: Vec<record::Call> = answer.calls.iter().map(line).collect();
        // A stop does not wait for anything, and nothing else of the same answer is done.
        if let Some(at) = self.first_stop(&answer.calls) {
            let end = self.stop(&answer.calls[at], &mut lines[at]).await;
            for (other, line) in lines.iter_mut().enumerate() {
                if other != at {
                    line.observation = json!("skipped: the same answer contained a stop");
                }
            }
            self.tell_model(&lines);
            return (lines, end);
        }
        let (prepared, mut end) = self.prepare(answer, &mut lines).await;
        if end.is_none() {
            end = self.make(prepared.ready, &mut lines).await;
        }
        self.tell_model(&lines);
        (lines, end)
    }

    /// Adds the results to the conversation, one for each call.
    fn tell_model(&mut self, lines: &[record::Call]) {
        for line in lines {
            let text = line.observation.as_str().unwrap_or_default();
            let message = prompt::observation(&line.id, text, self.settings.as_text());
            self.messages.push(message);
        }
        // Pictures come after the results: nothing may stand between calls and their results.
        self.messages.append(&mut self.pictures);
    }

    /// Refuses calls that cannot be made, carries out the agent's own tools, and plans the rest. Calls after a refused one are not
    /// made, because the model meant them to follow it.
    async fn prepare(&mut self, answer: &Answer, lines: &mut [record::Call]) -> (PreparedCalls, Option<End>) {
        let budgets = self.settings.budgets();
        let most = usize::try_from(budgets.calls_at_once).unwrap_or(usize::MAX);
        let mut prepared = PreparedCalls::default();
        for (at, asked) in answer.calls.iter().enumerate() {
            if let Some(before) = at.checked_sub(1).map(|before| &lines[before])
                && before.status == Status::Refused
            {
                prepared.refused = Some(before.name.clone());
            }
            let line = &mut lines[at];
            if let Some(refused) = &prepared.refused {
                line.observation = json!(format!("skipped: '{refused}' was refused"));
                continue;
            }
            if at >= most {
                line.observation = json!(format!("skipped: an answer may have at most {most} calls"));
                continue;
            }
            let (name, arguments) = match self.unwrapped(asked) {
                Ok(call) => call,
                Err(why) => {
                    self.refuse(line, &format!("MalformedCall: {why}. Nothing was done."));
                    continue;
                }
            };
            let value = Value::Object(arguments.clone());
            let Some(target) = self.belt.target(&name).cloned() else {
                self.refuse(line, &format!("UnknownTool: {}.", self.belt.unknown(&name)));
                continue;
            };
            let is_end = matches!(target, Target::Own(Own::Finish));
            if self.used.calls >= budgets.calls && !is_end {
                line.observation = json!("skipped: the call budget of this run is used up");
                continue;
            }
            if self.used.would_repeat(&name, &value) > budgets.repeats {
                self.refuse(line, "the same call was made too often");
                return (prepared, Some(End::Budget(BudgetKind::Repeats)));
            }
            match target {
                Target::Own(own) => {
                    if let Some(end) = self.run_own_tool(own, &arguments, answer.calls.len(), line).await {
                        return (prepared, Some(end));
                    }
                }
                Target::Tool(tool) => {
                    self.used.call(&name, &value);
                    let plan = if tool.effect == Effect::Read {
                        None
                    } else {
                        match self.hands.plan(&tool, &arguments).await {
                            Ok(plan) => Some(plan),
                            Err(why) => {
                                self.refuse(line, &why.text);
                                continue;
                            }
                        }
                    };
                    line.plan = plan.as_ref().map(planned);
                    prepared.ready.push(Ready {
                        at,
                        tool,
                        arguments,
                        plan,
                    });
                }
            }
        }
        (prepared, None)
    }

    /// Returns the tool and the arguments that a call is for: `call_tool` stands for another tool.
    fn unwrapped(&self, asked: &ModelCall) -> Result<(String, Object), String> {
        let arguments = asked.arguments.clone()?;
        if !matches!(self.belt.target(&asked.name), Some(Target::Own(Own::CallTool))) {
            return Ok((asked.name.clone(), arguments));
        }
        let CallTool { name, arguments } = CallTool::read(&arguments)?;
        if matches!(self.belt.target(&name), Some(Target::Own(_))) {
            return Err(format!("{name} is called by its own name, without call_tool"));
        }
        Ok((name, arguments))
    }

    pub(super) fn refuse(&mut self, line: &mut record::Call, why: &str) {
        line.status = Status::Refused;
        line.observation = json!(why);
        self.used.count_outcome(true);
        (self.hands.audience)(&News::CallEnded {
            name: &line.name,
            status: Status::Refused,
            text: why,
            ms: 0,
        });
    }

    /// Makes the calls that are ready, in batches of calls that share nothing. After a failure no further batch begins.
    async fn make(&mut self, ready: Vec<Ready>, lines: &mut [record::Call]) -> Option<End> {
        let claims: Vec<Claim> = ready.iter().map(Ready::claim).collect();
        let mut failed = None;
        let mut end = None;
        for batch in batches(&claims) {
            let batch: Vec<&Ready> = batch.into_iter().map(|at| &ready[at]).collect();
            if end.is_none() {
                end = self.hands.interrupt.raised();
            }
            if let Some(why) = end
                .as_ref()
                .map(End::text)
                .or_else(|| failed.as_ref().map(|name| format!("'{name}' failed")))
            {
                for call in batch {
                    lines[call.at].observation = json!(format!("skipped: {why}"));
                }
                continue;
            }
            let mut allowed = Vec::new();
            // It includes what the other calls of this batch ask for.
            let mut used = self.used.clone();
            for call in batch {
                if let Some(refused) = &failed {
                    lines[call.at].observation = json!(format!("skipped: '{refused}' was refused"));
                    continue;
                }
                match self.permitted(call, &mut used).await {
                    Verdict::Go => allowed.push(call),
                    Verdict::Refuse(why) => {
                        self.refuse(&mut lines[call.at], &format!("BudgetError: {why}"));
                        failed = Some(call.tool.name.clone());
                    }
                    Verdict::End(reason) => {
                        lines[call.at].observation = json!(format!("skipped: {}", reason.text()));
                        end = Some(reason);
                    }
                }
            }
            if end.is_some() {
                for call in allowed {
                    lines[call.at].observation = json!("skipped: the run is ending");
                }
                continue;
            }
            let moving = allowed.iter().any(|call| call.tool.effect == Effect::Motion);
            let results = join_all(allowed.iter().map(|call| self.one(call))).await;
            for (call, mut result) in allowed.into_iter().zip(results) {
                if !result.succeeded() {
                    failed = Some(call.tool.name.clone());
                }
                let claim = call.claim();
                if result.began && claim.effect == Effect::Motion && !self.moved.contains(&claim) {
                    self.moved.push(claim);
                }
                self.record_result(call, &result);
                if !result.pictures.is_empty() {
                    self.pictures.push(prompt::pictures(
                        &call.tool.name,
                        &std::mem::take(&mut result.pictures),
                    ));
                }
                let line = &mut lines[call.at];
                line.status = result.status;
                line.call_id = result.call_id;
                line.ms = result.ms;
                line.observation = json!(prompt::cut(&result.text, self.settings.door.result_bytes));
            }
            if moving && end.is_none() {
                self.observe().await;
                end = self.physical();
            }
        }
        end
    }

    /// Whether a call may be made now, given what is used. If it may, its amount is added to `used`.
    async fn permitted(&self, call: &Ready, used: &mut Usage) -> Verdict {
        if call.tool.effect != Effect::Motion || self.settings.dry_run {
            return Verdict::Go;
        }
        if let Some(end) = self.hands.watch.check().await {
            return Verdict::End(end);
        }
        let charge = match call.charge() {
            Ok(asked) => asked,
            Err(why) => return Verdict::Refuse(why),
        };
        let battery = self.state.battery(&call.tool.toolbox_id, &call.arguments_value());
        let verdict = used.motion(self.settings.budgets(), charge, battery);
        if verdict == Verdict::Go {
            *used += charge;
        }
        verdict
    }

    async fn one(&self, call: &Ready) -> CallResult {
        let arguments = Value::Object(call.arguments.clone());
        let waves = call.plan.as_ref().map(waves).unwrap_or_default();
        (self.hands.audience)(&News::Call {
            name: &call.tool.name,
            arguments: &arguments,
            waves: &waves,
        });
        let mut call_result = match &call.plan {
            Some(plan) if self.settings.dry_run => {
                let text = json!({"dry_run": true, "would": planned(plan)}).to_string();
                CallResult::of_text(Status::Planned, &text)
            }
            _ => self.hands.make(&call.tool, &call.arguments).await,
        };
        if let Some(result) = call_result
            .result
            .as_ref()
            .filter(|_| !self.settings.blank.is_empty())
        {
            let mut excerpt = result.clone();
            blanked(&mut excerpt, &self.settings.blank);
            call_result.text = excerpt.to_string();
        }
        (self.hands.audience)(&News::CallEnded {
            name: &call.tool.name,
            status: call_result.status,
            text: &call_result.text,
            ms: call_result.ms,
        });
        call_result
    }

    /// Charges a call, and records what its result says about the world.
    fn record_result(&mut self, call: &Ready, call_result: &CallResult) {
        if call_result.status != Status::NotMade {
            self.used.count_outcome(call_result.failed());
        }
        let arguments = call.arguments_value();
        if let Some(result) = &call_result.result {
            self.state.see(&arguments, result);
        }
        // If a vehicle counts its turning and distance itself, its numbers are charged, else the arguments of the call. A call
        // that failed may have moved the vehicle anyway.
        let is_measured = self.state.is_measured(&call.tool.toolbox_id, &arguments);
        if call.tool.effect == Effect::Motion && call_result.call_id.is_some() && !is_measured {
            // A call whose amount cannot be determined was refused before.
            self.used += call.charge().unwrap_or_default();
        }
    }
}

fn line(asked: &ModelCall) -> record::Call {
    record::Call {
        id: asked.id.clone(),
        name: asked.name.clone(),
        arguments: asked.arguments.clone().ok().map(Value::Object),
        observation: json!("not made"),
        ..record::Call::default()
    }
}
