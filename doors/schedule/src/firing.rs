//! One firing: the call or the run of a schedule, decided on anew as its asker.

use std::sync::Arc;
use std::time::Duration;

use client::payload::{
    CallOptions, Confirm, InvokeRequest, PlanRequest, RunPlanRequest, RunRequest, RunStep,
};
use client::{Call, Client, ClientError, Patience, Received, Step, topic};
use door::{Answer, Door, ListedTool, StartError, own_id};
use ovos_toolbox_wire::{Effect, FailureKind, Object, Severity};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::table::What;

/// How often a call that waits for an approval is made again.
const AGAIN: Duration = Duration::from_secs(2);

/// How long the plans of a request are waited for.
const PLAN_WAIT: Duration = Duration::from_secs(5);

/// The subsystem of a vehicle that flies.
const FLIGHT: &str = "flight";

/// A call or a run that was checked.
pub(crate) enum Work {
    Call(InvokeRequest),
    Run(Vec<RunStep>),
}

impl Work {
    /// Reads what a schedule does, as it was given or kept.
    ///
    /// # Errors
    /// What was expected.
    pub(crate) fn read(what: &What) -> Result<Self, String> {
        match what {
            What::Call(data) => {
                let name = data.get("name").and_then(Value::as_str);
                let name = name.ok_or("call: expected {\"name\", \"args\", \"toolbox_id\"?}")?;
                Ok(Self::Call(InvokeRequest {
                    name: name.to_owned(),
                    args: client::read_arguments(data.get("args"))
                        .map_err(|_| "call: expected `args` to be an object")?,
                    toolbox_id: data.get("toolbox_id").and_then(Value::as_str).map(str::to_owned),
                    options: CallOptions::default(),
                }))
            }
            What::Run(data) => {
                let steps = data.get("steps").cloned().unwrap_or_default();
                let steps: Vec<RunStep> =
                    read(steps).map_err(|why| format!("run: {why}; expected {{\"steps\": [...]}}"))?;
                if steps.is_empty() {
                    return Err("run: expected at least one step".to_owned());
                }
                Ok(Self::Run(steps))
            }
            What::Message(_) => Err("a message calls no tool".to_owned()),
        }
    }

    /// The names of its tools, with the toolboxes that are meant.
    fn names(&self) -> Vec<(&str, Option<&str>)> {
        match self {
            Self::Call(call) => vec![(&call.name, call.toolbox_id.as_deref())],
            Self::Run(steps) => steps
                .iter()
                .map(|step| (step.name.as_str(), step.toolbox_id.as_deref()))
                .collect(),
        }
    }
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(value)
}

/// Checks what is to be done now or later, and returns what the most dangerous of its tools does.
///
/// # Errors
/// Why it is not done, as `Kind: message`: there is no such tool, it cannot be scheduled, or it has no plan.
pub(crate) async fn check(door: &Arc<Door>, client: &Client, work: &Work) -> Result<ListedTool, String> {
    let listing = door.refreshed().await;
    let mut strongest: Option<&ListedTool> = None;
    for (name, toolbox_id) in work.names() {
        let mut tools = listing.callable().filter(|tool| {
            (tool.name == name || tool.exported == name) && toolbox_id.is_none_or(|id| id == tool.toolbox_id)
        });
        let tool = tools.next().ok_or_else(|| {
            format!(
                "{}: there is no tool '{name:.80}' that can be scheduled",
                FailureKind::ValueError
            )
        })?;
        if tools.next().is_some() {
            return Err(format!(
                "{}: several toolboxes have '{name:.80}': say which, with toolbox_id",
                FailureKind::ValueError
            ));
        }
        if matches!(tool.effect, Effect::Stop | Effect::Resume) {
            return Err(format!(
                "{}: '{name}' stops or resumes, and is not scheduled",
                FailureKind::PermissionError
            ));
        }
        let rank = |tool: &ListedTool| match tool.effect {
            Effect::Read => 0,
            Effect::Write => 1,
            Effect::Safe => 2,
            _ => 3,
        };
        if strongest.is_none_or(|other| rank(tool) > rank(other)) {
            strongest = Some(tool);
        }
    }
    let strongest = strongest.cloned().ok_or("ValueError: there is nothing to do")?;
    let plans = plans(client, work, strongest.effect == Effect::Motion).await?;
    let flies = |subsystem: &String| subsystem == FLIGHT || subsystem.ends_with("/flight");
    if plans
        .iter()
        .any(|(effect, subsystems)| *effect == Effect::Motion && subsystems.iter().any(flies))
    {
        return Err(format!(
            "{}: flights cannot be scheduled: call the tool directly",
            FailureKind::PermissionError
        ));
    }
    Ok(strongest)
}

/// What each step does and holds.
async fn plans(client: &Client, work: &Work, moves: bool) -> Result<Vec<(Effect, Vec<String>)>, String> {
    match work {
        Work::Call(call) => {
            let request = PlanRequest {
                name: call.name.clone(),
                args: call.args.clone(),
                toolbox_id: call.toolbox_id.clone(),
            };
            let plan = client.plan(&request).await.map_err(|error| error_text(&error))?;
            Ok(vec![(plan.effect, plan.subsystems)])
        }
        Work::Run(steps) => {
            let request = RunPlanRequest { steps: steps.clone() };
            let plans = client.ask(topic::PLAN_RUN, &request, PLAN_WAIT).await;
            let plans = plans
                .and_then(|plans| plans.good())
                .map_err(|error| error_text(&error))?;
            let mut found = Vec::with_capacity(plans.steps.len());
            for step in plans.steps {
                match (step.plan, step.error) {
                    (Some(plan), _) => found.push((plan.effect, plan.subsystems)),
                    (None, Some(error)) => return Err(error),
                    (None, None) if moves => {
                        return Err(format!(
                            "{}: step '{}' takes values from results, so the run cannot be checked for motion in advance: schedule it \
                             without `$from`",
                            FailureKind::ValueError,
                            step.id
                        ));
                    }
                    (None, None) => {}
                }
            }
            Ok(found)
        }
    }
}

fn error_text(error: &ClientError) -> String {
    match error {
        ClientError::Refused(refusal) => refusal.text.clone(),
        other => format!("{}: {other}", FailureKind::RuntimeError),
    }
}

/// How a firing ended.
pub(crate) enum End {
    /// It was carried out, well or not: what a person reads of it.
    Done { failed: bool, text: String },
    /// It did not run.
    NotRun(String),
}

/// Makes the call of a schedule, and waits for its end. A call that a person has to confirm waits for that.
///
/// # Cancel safety
/// Dropping it asks the service to end the call.
pub(crate) async fn carry(
    door: &Arc<Door>,
    client: &Client,
    what: &What,
    schedule_id: &str,
    end: &CancellationToken,
) -> End {
    let work = match Work::read(what) {
        Ok(work) => work,
        Err(why) => return End::NotRun(why),
    };
    let mut waits_until = None;
    loop {
        if end.is_cancelled() {
            return End::NotRun("it was stopped".to_owned());
        }
        let tool = match check(door, client, &work).await {
            Ok(tool) => tool,
            Err(why) => return End::NotRun(why),
        };
        let (ended, confirm) = match &work {
            Work::Call(call) => made(door, client, &tool, call.clone(), end).await,
            Work::Run(steps) => ran(door, client, &tool, steps.clone(), end).await,
        };
        let Some(confirm) = confirm else { return ended };
        let until = *waits_until.get_or_insert_with(|| {
            let data = json!({
                "schedule_id": schedule_id, "id": confirm.id, "text": confirm.text, "expires_ms": confirm.expires_ms,
            });
            if let Err(error) = door.client.event("schedule_waits", Severity::Warning, data) {
                tracing::warn!(%error, "the event about a schedule that waits was not sent");
            }
            Instant::now() + Duration::from_millis(confirm.expires_ms)
        });
        if Instant::now() >= until {
            return End::NotRun("it needs approval, and got none in time".to_owned());
        }
        tokio::select! {
            () = end.cancelled() => return End::NotRun("it was stopped before it was approved".to_owned()),
            () = sleep(AGAIN) => {}
        }
    }
}

async fn made(
    door: &Arc<Door>,
    client: &Client,
    tool: &ListedTool,
    mut call: InvokeRequest,
    end: &CancellationToken,
) -> (End, Option<Confirm>) {
    let call_id = own_id("schedule");
    call.name.clone_from(&tool.name);
    call.toolbox_id = Some(tool.toolbox_id.clone());
    call.options.call_id = Some(call_id.clone());
    call.options.detail = true;
    let answer = match answer(
        door,
        tool,
        &call_id,
        |patience| client.invoke(call, patience),
        end,
    )
    .await
    {
        Ok(answer) => answer,
        Err(end) => return (end, None),
    };
    let report = Answer::of(tool, &answer);
    (done(report.failed, &report.text), door::confirmation_of(&answer))
}

async fn ran(
    door: &Arc<Door>,
    client: &Client,
    tool: &ListedTool,
    steps: Vec<RunStep>,
    end: &CancellationToken,
) -> (End, Option<Confirm>) {
    let call_id = own_id("schedule");
    let request = RunRequest {
        steps,
        options: CallOptions {
            call_id: Some(call_id.clone()),
            ..CallOptions::default()
        },
    };
    let answer = match answer(
        door,
        tool,
        &call_id,
        |patience| client.run(request, patience),
        end,
    )
    .await
    {
        Ok(answer) => answer,
        Err(end) => return (end, None),
    };
    let text = answer
        .data
        .get("error")
        .and_then(Value::as_str)
        .unwrap_or("every step completed");
    (
        done(answer.data.get("ok") != Some(&Value::Bool(true)), text),
        None,
    )
}

fn done(failed: bool, text: &str) -> End {
    let text = text[..text.floor_char_boundary(2000)].to_owned();
    End::Done { failed, text }
}

async fn answer<A>(
    door: &Arc<Door>,
    tool: &ListedTool,
    call_id: &str,
    send: impl FnOnce(Patience) -> Result<Call<A>, ClientError>,
    end: &CancellationToken,
) -> Result<Received<A>, End> {
    let turn = door.arrivals().turn();
    let mut carried = match door.carry(&turn, tool, call_id, send).await {
        Ok(carried) => carried,
        Err(StartError::Stopped) => return Err(End::NotRun("it was stopped before it began".to_owned())),
        Err(StartError::Client(error)) => return Err(End::NotRun(error.to_string())),
    };
    let mut is_cancelled = false;
    loop {
        tokio::select! {
            biased;
            () = end.cancelled(), if !is_cancelled => {
                is_cancelled = true;
                carried.cancel("its schedule was stopped");
            }
            step = carried.next() => match step {
                Ok(Step::Answer(answer)) => return Ok(answer),
                Ok(Step::Progress(_)) => {}
                Err(lost) => return Err(done(true, &lost.to_string())),
            },
        }
    }
}

/// The context with which a schedule fires: for whom it does.
pub(crate) fn context(on_behalf: &Value) -> Object {
    let mut context = Object::new();
    context.insert("on_behalf".to_owned(), on_behalf.clone());
    context
}
