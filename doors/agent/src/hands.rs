//! Carries calls out: plans them, asks people to confirm them, makes them, and reads their results.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::budget::millis;
use crate::end::End;
use crate::interrupt::Interrupt;
use crate::news::{Audience, News};
use crate::person::Person;
use crate::record::Status;
use crate::settings::Settings;
use crate::watch::Watch;
use client::payload::{
    CallOptions, Confirm, ContentMode, InvokeRequest, InvokeResponse, PlanRequest, PlanResponse, ProgressKind,
};
use client::{Client, ClientError, Received, Step};
use door::{Answer, Arrivals, Door, ListedTool, NoAnswer, StartError, Turn, shorten};
use ovos_toolbox_wire::{Content, Effect, FailureKind, Object, Outcome};
use serde_json::{Value, json};

/// The code in a drone's results which says that a person flies the drone.
const TAKEOVER: &str = "pilot_override";

/// The parts of a run with which calls are made.
pub(crate) struct Hands<'a> {
    pub(crate) door: &'a Door,
    pub(crate) client: &'a Client,
    pub(crate) arrivals: Arrivals,
    pub(crate) settings: &'a Settings,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) watch: &'a Watch<'a>,
    pub(crate) audience: &'a Audience,
    pub(crate) person: Option<&'a Person>,
    /// Whether a call had no answer: such a call may still run.
    pub(crate) lost: AtomicBool,
    /// Whether the run has ended. From then on, only people and stops prevent or end a call.
    pub(crate) ending: bool,
}

/// The outcome of a call.
#[derive(Debug)]
pub(crate) struct CallResult {
    pub(crate) status: Status,
    /// The value that the tool returned, if any.
    pub(crate) result: Option<Value>,
    /// The text that the model reads.
    pub(crate) text: String,
    pub(crate) call_id: Option<String>,
    /// Pictures, as `data:` URLs.
    pub(crate) pictures: Vec<String>,
    pub(crate) ms: u64,
    /// Whether an action of the call began, or may have begun.
    pub(crate) began: bool,
}

impl CallResult {
    pub(crate) fn of_text(status: Status, text: &str) -> Self {
        Self {
            status,
            result: None,
            text: text.to_owned(),
            call_id: None,
            pictures: Vec::new(),
            ms: 0,
            began: false,
        }
    }

    /// Whether the outcome counts as a failure.
    pub(crate) fn failed(&self) -> bool {
        matches!(
            self.status,
            Status::Failed | Status::Refused | Status::WaitsForConfirmation
        )
    }
}

/// A call that was answered.
struct AnsweredCall {
    answer: Received<InvokeResponse>,
    call_id: String,
    /// Whether an action of the call was cancelled, but not by this run.
    cut_short: bool,
    /// Whether an action of the call began.
    began: bool,
}

impl Hands<'_> {
    /// Returns the plan of a call. An error is the service's objection to the arguments.
    ///
    /// # Cancel safety
    /// Safe: it changes nothing.
    pub(crate) async fn plan(&self, tool: &ListedTool, arguments: &Object) -> Result<PlanResponse, Answer> {
        let request = PlanRequest {
            name: tool.name.clone(),
            args: arguments.clone(),
            toolbox_id: Some(tool.toolbox_id.clone()),
        };
        let planned = self.client.plan(&request).await;
        planned.map_err(|error| Answer::refused(tool, &error))
    }

    /// Makes a call, and asks a person if it has to be confirmed.
    ///
    /// # Cancel safety
    /// Dropping it asks the service to end the call.
    pub(crate) async fn make(&self, tool: &ListedTool, arguments: &Object) -> CallResult {
        let began = Instant::now();
        let mut options = CallOptions::default();
        let turn = self.arrivals.turn();
        let answer = match self.call(&turn, tool, arguments, &options).await {
            Ok(answered) => match (door::confirmation_of(&answered.answer), self.person) {
                (None, _) => answered,
                (Some(confirm), None) => {
                    return self.waits(tool, &confirm, "no user can be asked here", began);
                }
                (Some(confirm), Some(person)) => {
                    let ask = || (self.audience)(&News::Ask { text: &confirm.text });
                    // If a stop and a confirmation arrive together, the stop counts.
                    let yes = tokio::select! {
                        biased;
                        _ = self.interrupted() => None,
                        yes = person.confirms(Duration::from_millis(confirm.expires_ms), ask) => yes,
                    };
                    match yes {
                        None => return self.waits(tool, &confirm, "nobody answered here", began),
                        Some(true) => options.confirm = Some(confirm.token),
                        Some(false) => options.decline = Some(confirm.token),
                    }
                    match self.call(&turn, tool, arguments, &options).await {
                        Ok(again) => again,
                        Err(result) => return *result,
                    }
                }
            },
            Err(result) => return *result,
        };
        let mut result = self.read(tool, &answer).await;
        result.began = answer.began || result.status == Status::Completed;
        result.call_id = Some(answer.call_id);
        result.ms = millis(began.elapsed());
        result
    }

    fn waits(&self, tool: &ListedTool, confirm: &Confirm, why: &str, began: Instant) -> CallResult {
        (self.audience)(&News::Confirm {
            text: &confirm.text,
            id: &confirm.id,
        });
        let mut result = CallResult::of_text(
            Status::WaitsForConfirmation,
            &door::approval_required(tool, confirm, why).text,
        );
        result.ms = millis(began.elapsed());
        result
    }

    /// Sends a call and carries it to its answer. If the run ends, the call is ended, too.
    async fn call(
        &self,
        turn: &Turn,
        tool: &ListedTool,
        arguments: &Object,
        options: &CallOptions,
    ) -> Result<AnsweredCall, Box<CallResult>> {
        let is_stop = tool.effect == Effect::Stop;
        if let Some(end) = self.interrupt.raised().filter(|end| !is_stop && self.counts(end)) {
            let why = format!("skipped: {}", end.text());
            return Err(Box::new(CallResult::of_text(Status::NotMade, &why)));
        }
        let call_id = door::own_id("agent");
        let request = InvokeRequest {
            name: tool.name.clone(),
            args: arguments.clone(),
            toolbox_id: Some(tool.toolbox_id.clone()),
            options: CallOptions {
                call_id: Some(call_id.clone()),
                progress: tool.effect != Effect::Read,
                detail: true,
                content: self.settings.door.vision.then_some(ContentMode::Inline),
                ..options.clone()
            },
        };
        let failed = |answer: Answer| {
            let mut result = CallResult::of_text(Status::Failed, &answer.text);
            result.call_id = Some(call_id.clone());
            Box::new(result)
        };
        // What toolboxes want called at the end brings machines to rest, and no client has asked for it.
        let client = if self.ending {
            &self.door.client
        } else {
            self.client
        };
        let send = |patience| client.invoke(request, patience);
        let sent = self.door.carry(turn, tool, &call_id, send).await;
        let mut carried = sent.map_err(|why| {
            if let StartError::Client(error) = &why {
                self.end_run_without_service(error);
            }
            failed(Answer::not_begun(tool, &why))
        })?;
        let mut ended: Option<End> = None;
        let (mut cut_short, mut began) = (false, false);
        loop {
            let interrupted = async {
                match &ended {
                    None if !is_stop => self.interrupted().await,
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                step = carried.next() => match step {
                    Ok(Step::Progress(progress)) => {
                        if let Ok(progress) = progress.read() {
                            began |= progress.kind != ProgressKind::Queued;
                            cut_short |= ended.is_none() && progress.outcome == Some(Outcome::Cancelled);
                            (self.audience)(&News::Progress(&progress));
                        }
                    }
                    Ok(Step::Answer(answer)) => {
                        return Ok(AnsweredCall {
                            answer,
                            call_id,
                            cut_short,
                            began,
                        });
                    }
                    Err(lost) => {
                        self.lost.store(true, Ordering::Relaxed);
                        if let NoAnswer::Client(error) = &lost {
                            self.end_run_without_service(error);
                        }
                        let left = ended.map_or_else(String::new, |end| end.text());
                        let mut result = failed(Answer::lost(tool, &lost, &left));
                        result.began = true;
                        return Err(result);
                    }
                },
                end = interrupted => {
                    // The agent sends no commands to a machine that a person has taken over: the toolbox ends the call, at the
                    // latest when its time is up. Every other call ends now, whichever toolbox was stopped or taken over.
                    if !self.interrupt.is_taken_over(&tool.toolbox_id) {
                        carried.cancel(end.as_str());
                    }
                    ended = Some(end);
                }
            }
        }
    }

    /// Whether an end of the run prevents or ends a call.
    fn counts(&self, end: &End) -> bool {
        !self.ending || end.is_of_people()
    }

    async fn interrupted(&self) -> End {
        self.interrupt.wait_for(|end| self.counts(end)).await
    }

    /// Ends the run, because the service is gone.
    fn end_run_without_service(&self, error: &ClientError) {
        if !matches!(error, ClientError::Refused(_) | ClientError::TooLarge { .. }) {
            self.interrupt.raise(End::Service(error.to_string()));
        }
    }

    /// Reads the outcome of a call, and checks whether people or a stop ended it.
    async fn read(&self, tool: &ListedTool, answered: &AnsweredCall) -> CallResult {
        let answer = &answered.answer;
        let readable_answer = Answer::of(tool, answer);
        let result = answer.data.get("result").cloned();
        let mut call_result = CallResult::of_text(
            if readable_answer.failed {
                Status::Failed
            } else {
                Status::Completed
            },
            &self.readable(tool, &readable_answer),
        );
        if readable_answer.failed {
            self.why(tool, &readable_answer.data, answered.cut_short).await;
        }
        if self.settings.door.vision {
            let content = answer.data.get("content").cloned().unwrap_or_default();
            let content: Vec<Content> = serde_json::from_value(content).unwrap_or_default();
            call_result.pictures = content.iter().filter_map(picture).collect();
        }
        call_result.result = result;
        call_result
    }

    /// The text of an answer, at most as long as a result may be.
    fn readable(&self, tool: &ListedTool, answer: &Answer) -> String {
        let short = shorten(tool, &answer.data, self.settings.door.result_bytes);
        match short.filter(|_| !answer.failed) {
            Some(short) => format!("{} {}", short.remark, short.value),
            None => answer.text.clone(),
        }
    }

    /// Checks what a failure means for the run.
    async fn why(&self, tool: &ListedTool, data: &Value, cut_short: bool) {
        let kind = data["error"]["kind"].as_str().and_then(|kind| kind.parse().ok());
        let message = data["error"]["message"].as_str().unwrap_or_default();
        if data["code"] == TAKEOVER || message.contains(TAKEOVER) {
            self.interrupt
                .take_over(&tool.toolbox_id, "the vehicle reports it");
        }
        if kind == Some(FailureKind::EmergencyStop) {
            self.interrupt.raise(End::Latched(message.to_owned()));
        }
        // Stops that arrived before the answer have been processed when this returns.
        let ended = self.watch.check().await;
        if ended.is_none() && (cut_short || kind == Some(FailureKind::CancelledError)) {
            self.interrupt
                .raise(End::Operator("a call of the run was cancelled".to_owned()));
        }
    }
}

/// Returns a picture as a URL that models read.
fn picture(content: &Content) -> Option<String> {
    let content = serde_json::to_value(content).ok()?;
    let is_picture = content["type"] == "image";
    let (kind, data) = (content["mime_type"].as_str()?, content["data"].as_str()?);
    is_picture.then(|| format!("data:{kind};base64,{data}"))
}

/// Returns a plan in the form in which it is recorded and shown.
pub(crate) fn planned(plan: &PlanResponse) -> Value {
    json!({
        "effect": plan.effect,
        "bound_ms": plan.bound_ms,
        "subsystems": plan.subsystems,
        "waves": waves(plan),
    })
}

/// Returns the names of the actions of each wave.
pub(crate) fn waves(plan: &PlanResponse) -> Vec<Vec<String>> {
    let names = |wave: &Vec<client::payload::PlannedActionEntry>| {
        wave.iter().map(|action| action.id.clone()).collect()
    };
    plan.waves.iter().map(names).collect()
}
