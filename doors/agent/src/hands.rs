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
use ovos_toolbox_wire::{Content, ContentKind, Effect, FailureKind, Object, Outcome};
use serde::Deserialize as _;
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

    /// Whether the call did what was asked, so that calls which rely on it may follow.
    pub(crate) fn succeeded(&self) -> bool {
        matches!(self.status, Status::Completed | Status::Planned)
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
        planned.map_err(|error| match error {
            ClientError::Refused(_) => Answer::refused(tool, &error),
            // A plan moves nothing.
            error => Answer::not_carried_out(tool, &error),
        })
    }

    /// Makes a call, and asks a person if it has to be confirmed.
    ///
    /// # Cancel safety
    /// Dropping it asks the service to end the call.
    pub(crate) async fn make(&self, tool: &ListedTool, arguments: &Object) -> CallResult {
        let began = Instant::now();
        let mut result = match self.answered(tool, arguments).await {
            Ok(answer) => {
                let mut result = self.read(tool, &answer).await;
                result.began = answer.began || result.status == Status::Completed;
                result.call_id = Some(answer.call_id);
                result
            }
            Err(result) => *result,
        };
        result.ms = millis(began.elapsed());
        result
    }

    /// Carries a call to its answer, and asks a person if it has to be confirmed.
    async fn answered(&self, tool: &ListedTool, arguments: &Object) -> Result<AnsweredCall, Box<CallResult>> {
        let mut options = CallOptions::default();
        let turn = self.arrivals.turn();
        let answered = self.call(&turn, tool, arguments, &options).await?;
        let Some(confirm) = door::confirmation_of(&answered.answer) else {
            return Ok(answered);
        };
        let Some(person) = self.person else {
            return Err(self.waits(tool, &confirm, "no user can be asked here"));
        };
        let ask = || (self.audience)(&News::Ask { text: &confirm.text });
        // If a stop and a confirmation arrive together, the stop counts.
        let yes = tokio::select! {
            biased;
            // It is not declined: the same call of the next run would be held as one that a person has refused.
            end = self.interrupted() => return Err(not_made(&end)),
            yes = person.confirms(Duration::from_millis(confirm.expires_ms), ask) => yes,
        };
        match yes {
            None => return Err(self.waits(tool, &confirm, "nobody answered here")),
            Some(true) => options.confirm = Some(confirm.token),
            Some(false) => options.decline = Some(confirm.token),
        }
        self.call(&turn, tool, arguments, &options).await
    }

    fn waits(&self, tool: &ListedTool, confirm: &Confirm, why: &str) -> Box<CallResult> {
        (self.audience)(&News::Confirm {
            text: &confirm.text,
            id: &confirm.id,
        });
        Box::new(CallResult::of_text(
            Status::WaitsForConfirmation,
            &door::approval_required(tool, confirm, why).text,
        ))
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
        // The closing calls of toolboxes bring machines to rest, and are made in the door's own name, not for the client.
        let client = if self.ending {
            &self.door.client
        } else {
            self.client
        };
        let send = |patience| client.invoke(request, patience);
        let sent = tokio::select! {
            biased;
            // The run may have ended by now, or end while the call waits for its turn.
            end = self.interrupted(), if !is_stop => return Err(not_made(&end)),
            sent = self.door.carry(turn, tool, &call_id, send) => sent,
        };
        let mut carried = sent.map_err(|why| {
            let status = match &why {
                StartError::Client(error) => {
                    self.end_run_without_service(error);
                    if is_callers_fault(error) {
                        Status::Refused
                    } else {
                        Status::NotMade
                    }
                }
                StartError::Stopped => Status::NotMade,
            };
            Box::new(CallResult::of_text(status, &Answer::not_begun(tool, &why).text))
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
                        let text = Answer::lost(tool, &lost, &left).text;
                        return Err(Box::new(CallResult {
                            call_id: Some(call_id),
                            began: true,
                            ..CallResult::of_text(Status::Failed, &text)
                        }));
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
        if !matches!(error, ClientError::Refused(_)) && !is_callers_fault(error) {
            self.interrupt.raise(End::Service(error.to_string()));
        }
    }

    /// Reads the outcome of a call, and checks whether people or a stop ended it.
    async fn read(&self, tool: &ListedTool, answered: &AnsweredCall) -> CallResult {
        let answer = &answered.answer;
        let readable_answer = Answer::of(tool, answer);
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
            let content = answer.data.get("content").and_then(Value::as_array);
            call_result.pictures = content.into_iter().flatten().filter_map(picture).collect();
        }
        call_result.result = answer.data.get("result").cloned();
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
        // Only what moves a machine can say so in a sentence; others may quote the word.
        let moves = !matches!(tool.effect, Effect::Read | Effect::Write);
        if data["code"] == TAKEOVER || (moves && message.contains(TAKEOVER)) {
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

/// Returns a picture as a URL that models read; `None` for any other content.
fn picture(content: &Value) -> Option<String> {
    match Content::deserialize(content).ok()? {
        Content {
            kind: ContentKind::Image,
            mime_type,
            data: Some(data),
            ..
        } => Some(format!("data:{mime_type};base64,{data}")),
        _ => None,
    }
}

/// A call that is not made, because the run ends.
fn not_made(end: &End) -> Box<CallResult> {
    let why = format!("skipped: {}", end.text());
    Box::new(CallResult::of_text(Status::NotMade, &why))
}

/// Whether a request could not be sent because of its contents: the service may be there.
fn is_callers_fault(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::TooLarge { .. } | ClientError::Unwritable { .. }
    )
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
