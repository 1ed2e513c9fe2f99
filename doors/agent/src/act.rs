//! Carries calls out: plans them, asks people about them, makes them, and reads what came of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::budget::millis;
use crate::end::End;
use crate::interrupt::Interrupt;
use crate::person::Person;
use crate::record::Status;
use crate::settings::Settings;
use crate::tell::{Audience, Tell};
use crate::watch::Watch;
use client::payload::{
    CallOptions, Confirm, ContentMode, InvokeRequest, InvokeResponse, PlanRequest, PlanResponse, ProgressKind,
};
use client::{ClientError, Received, Step};
use door::{Answer, Door, Lost, Registered};
use ovos_toolbox_wire::{Content, Effect, FailureKind, Object, Outcome};
use serde_json::{Value, json};

/// The codes of results by which a drone says that a person flies.
const TAKEOVER: &str = "pilot_override";

/// What calls are made with.
pub(crate) struct Hands<'a> {
    pub(crate) door: &'a Door,
    pub(crate) settings: &'a Settings,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) watch: &'a Watch<'a>,
    pub(crate) audience: &'a Audience,
    pub(crate) person: Option<&'a Person>,
    /// A call had no answer: it may still run.
    pub(crate) lost: AtomicBool,
    /// The run has ended: from now on only people and stops keep a call from being made, or end one.
    pub(crate) ending: bool,
}

/// What became of a call.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) status: Status,
    /// What the tool returned, where it did.
    pub(crate) result: Option<Value>,
    /// What the model reads.
    pub(crate) text: String,
    pub(crate) call_id: Option<String>,
    /// Pictures, as `data:` URLs.
    pub(crate) pictures: Vec<String>,
    pub(crate) ms: u64,
    /// An action of it began, or may have.
    pub(crate) began: bool,
}

impl Came {
    pub(crate) fn said(status: Status, text: &str) -> Self {
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

    /// Whether it counts as a failure.
    pub(crate) fn failed(&self) -> bool {
        matches!(
            self.status,
            Status::Failed | Status::Refused | Status::WaitsForConfirmation
        )
    }
}

/// A call that was answered.
struct Answered {
    answer: Received<InvokeResponse>,
    call_id: String,
    /// An action of it was cancelled, and not by this run.
    cut_short: bool,
    /// An action of it began.
    began: bool,
}

impl Hands<'_> {
    /// The plan of a call. An error is what the service says about its arguments.
    ///
    /// # Cancel safety
    /// Safe: it changes nothing.
    pub(crate) async fn plan(&self, tool: &Registered, arguments: &Object) -> Result<PlanResponse, Answer> {
        let request = PlanRequest {
            name: tool.name.clone(),
            args: arguments.clone(),
            toolbox_id: Some(tool.toolbox_id.clone()),
        };
        let planned = self.door.client.plan(&request).await;
        planned.map_err(|error| Answer::refused(tool, &error))
    }

    /// Makes a call, and asks a person where it has to be confirmed.
    ///
    /// # Cancel safety
    /// Dropping it asks the service to end the call.
    pub(crate) async fn make(&self, tool: &Registered, arguments: &Object) -> Came {
        let began = Instant::now();
        let mut said = CallOptions::default();
        let answered = match self.call(tool, arguments, &said).await {
            Ok(answered) => match (door::confirm(&answered.answer), self.person) {
                (None, _) => answered,
                (Some(confirm), None) => {
                    return self.waits(tool, &confirm, "no person can be asked here", began);
                }
                (Some(confirm), Some(person)) => {
                    let ask = || (self.audience)(&Tell::Ask { text: &confirm.text });
                    // A stop that comes together with a yes is a stop.
                    let yes = tokio::select! {
                        biased;
                        _ = self.interrupted() => None,
                        yes = person.confirms(Duration::from_millis(confirm.expires_ms), ask) => yes,
                    };
                    match yes {
                        None => return self.waits(tool, &confirm, "there was no answer here", began),
                        Some(true) => said.confirm = Some(confirm.token),
                        Some(false) => said.decline = Some(confirm.token),
                    }
                    match self.call(tool, arguments, &said).await {
                        Ok(again) => again,
                        Err(came) => return *came,
                    }
                }
            },
            Err(came) => return *came,
        };
        let mut came = self.read(tool, &answered).await;
        came.began = answered.began || came.status == Status::Completed;
        came.call_id = Some(answered.call_id);
        came.ms = millis(began.elapsed());
        came
    }

    fn waits(&self, tool: &Registered, confirm: &Confirm, why: &str, began: Instant) -> Came {
        (self.audience)(&Tell::Confirm {
            text: &confirm.text,
            id: &confirm.id,
        });
        let mut came = Came::said(
            Status::WaitsForConfirmation,
            &door::waits(tool, confirm, why).text,
        );
        came.ms = millis(began.elapsed());
        came
    }

    /// Sends a call and carries it to its answer; ends it where the run ends.
    async fn call(
        &self,
        tool: &Registered,
        arguments: &Object,
        said: &CallOptions,
    ) -> Result<Answered, Box<Came>> {
        let is_stop = tool.effect == Effect::Stop;
        if let Some(end) = self.interrupt.raised().filter(|end| !is_stop && self.counts(end)) {
            let why = format!("not made: {}", end.text());
            return Err(Box::new(Came::said(Status::NotMade, &why)));
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
                ..said.clone()
            },
        };
        let failed = |answer: Answer| {
            let mut came = Came::said(Status::Failed, &answer.text);
            came.call_id = Some(call_id.clone());
            Box::new(came)
        };
        let send = |patience| self.door.client.invoke(request, patience);
        let sent = self.door.carry(tool, &call_id, send);
        let mut carried = sent.map_err(|error| {
            self.gone(&error);
            failed(Answer::refused(tool, &error))
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
                            (self.audience)(&Tell::Progress(&progress));
                        }
                    }
                    Ok(Step::Answer(answer)) => {
                        return Ok(Answered {
                            answer,
                            call_id,
                            cut_short,
                            began,
                        });
                    }
                    Err(lost) => {
                        self.lost.store(true, Ordering::Relaxed);
                        if let Lost::Client(error) = &lost {
                            self.gone(error);
                        }
                        let left = ended.map_or_else(String::new, |end| end.text());
                        let mut came = failed(Answer::lost(tool, &lost, &left));
                        came.began = true;
                        return Err(came);
                    }
                },
                end = interrupted => {
                    // What a person has is never commanded: its toolbox ends the call, at the latest when its time is up.
                    // Every other call ends now, whichever toolbox was stopped or taken over.
                    if !self.interrupt.is_taken(&tool.toolbox_id) {
                        carried.cancel(end.word());
                    }
                    ended = Some(end);
                }
            }
        }
    }

    /// Whether an end keeps a call from being made, or ends one.
    fn counts(&self, end: &End) -> bool {
        !self.ending || end.is_of_people()
    }

    async fn interrupted(&self) -> End {
        self.interrupt.wait_for(|end| self.counts(end)).await
    }

    /// A service that is gone ends the run.
    fn gone(&self, error: &ClientError) {
        if !matches!(error, ClientError::Refused(_) | ClientError::TooLarge { .. }) {
            self.interrupt.raise(End::Service(error.to_string()));
        }
    }

    /// What came of a call; also looks whether people or a stop ended it.
    async fn read(&self, tool: &Registered, answered: &Answered) -> Came {
        let answer = &answered.answer;
        let told = Answer::of(tool, answer);
        let result = answer.data.get("result").cloned();
        let mut came = Came::said(
            if told.failed {
                Status::Failed
            } else {
                Status::Completed
            },
            &told.text,
        );
        if told.failed {
            self.why(tool, &told.data, answered.cut_short).await;
        }
        if self.settings.door.vision {
            let content = answer.data.get("content").cloned().unwrap_or_default();
            let content: Vec<Content> = serde_json::from_value(content).unwrap_or_default();
            came.pictures = content.iter().filter_map(picture).collect();
        }
        came.result = result;
        came
    }

    /// Looks what a failure means for the run.
    async fn why(&self, tool: &Registered, data: &Value, cut_short: bool) {
        let kind = data["error"]["kind"].as_str().and_then(|kind| kind.parse().ok());
        let told = data["error"]["message"].as_str().unwrap_or_default();
        if data["code"] == TAKEOVER || told.contains(TAKEOVER) {
            self.interrupt.take(&tool.toolbox_id, "the vehicle says so");
        }
        if kind == Some(FailureKind::EmergencyStop) {
            self.interrupt.raise(End::Latched(told.to_owned()));
        }
        // Stops that came before the answer have arrived when this returns.
        let ended = self.watch.check().await;
        if ended.is_none() && (cut_short || kind == Some(FailureKind::CancelledError)) {
            self.interrupt
                .raise(End::Operator("a call of the run was cancelled".to_owned()));
        }
    }
}

/// A picture as a URL that models read.
fn picture(content: &Content) -> Option<String> {
    let content = serde_json::to_value(content).ok()?;
    let is_picture = content["type"] == "image";
    let (kind, data) = (content["mime_type"].as_str()?, content["data"].as_str()?);
    is_picture.then(|| format!("data:{kind};base64,{data}"))
}

/// A plan as it is recorded and shown.
pub(crate) fn planned(plan: &PlanResponse) -> Value {
    json!({
        "effect": plan.effect,
        "bound_ms": plan.bound_ms,
        "subsystems": plan.subsystems,
        "waves": waves(plan),
    })
}

/// The names of the actions of each wave.
pub(crate) fn waves(plan: &PlanResponse) -> Vec<Vec<String>> {
    let names = |wave: &Vec<client::payload::PlannedActionEntry>| {
        wave.iter().map(|action| action.id.clone()).collect()
    };
    plan.waves.iter().map(names).collect()
}
