//! A door that waits for goals on the bus: `ovos.tools.agent.run`, one at a time, and `.cancel`.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use client::payload::{
    AgentCancelRequest, AgentCancelResponse, AgentProgress, AgentProgressKind, AgentRunRequest,
    AgentRunResponse,
};
use client::{Client, Request};
use config::AgentDoor;
use door::Door;
use futures_util::FutureExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::end::End;
use crate::endpoint::{Endpoint, EndpointError};
use crate::interrupt::Interrupt;
use crate::news::{Audience, News};
use crate::prompt::cut;
use crate::record::RecordError;
use crate::session::{Session, SessionRun};
use crate::settings::{BudgetOverrides, Settings};
use crate::source::Source;
use crate::view::print_line;

const RUN: &str = "ovos.tools.agent.run";

/// The name of a run in the rules of the policy.
const WORK: &str = "agent.run";

const CANCEL: &str = "ovos.tools.agent.cancel";
const PROGRESS: &str = "ovos.tools.agent.progress";

/// The longest goal, in characters.
const LONGEST: usize = 4096;

/// How long to keep the answer of a run if the bus is away.
const KEPT: Duration = Duration::from_secs(60);

/// How often sending the answer is attempted.
const AGAIN: Duration = Duration::from_secs(1);

/// The longest text that progress carries, in bytes.
const SHOWN: usize = 2000;

/// The run under way.
struct CurrentRun {
    run_id: String,
    interrupt: Interrupt,
    ended: tokio::task::JoinHandle<()>,
}

/// Serves until the door closes. A run that is then under way is ended and answered.
///
/// # Errors
/// The endpoint cannot be used; this is checked before the first goal.
///
/// # Cancel safety
/// Dropping it asks the service to end the calls of a run.
pub(crate) async fn serve(
    door: &Arc<Door>,
    settings: impl Fn() -> Settings,
    view: Audience,
) -> Result<(), EndpointError> {
    endpoint(&settings().door)?;
    let mut requests = door.client.serve(&[RUN, CANCEL]);
    // Only now: a client that reads this line may ask at once, and what comes before `serve` is lost.
    print_line("ovos-tools agent waits for ovos.tools.agent.run");
    let mut current: Option<CurrentRun> = None;
    loop {
        let request = tokio::select! {
            request = requests.next() => request,
            () = door.shutdown.cancelled() => None,
        };
        let Some(request) = request else { break };
        if current.as_ref().is_some_and(|run| run.ended.is_finished()) {
            current = None;
        }
        match request.topic() {
            CANCEL => cancel(&door.client, &request, current.as_ref()),
            _ => match begin(door, &settings, &view, &request, current.as_ref()) {
                Ok(begun) => current = Some(begun),
                Err((run_id, error)) => {
                    let refused = AgentRunResponse {
                        run_id,
                        error: Some(error),
                        ..AgentRunResponse::default()
                    };
                    answer(&door.client, &request, &refused);
                }
            },
        }
    }
    // Requests that arrived before the end are answered, too.
    while let Some(Some(request)) = requests.next().now_or_never() {
        let error = Some("BusyError: the agent is shutting down".to_owned());
        match request.topic() {
            CANCEL => cancel(&door.client, &request, current.as_ref()),
            _ => {
                let refused = AgentRunResponse {
                    run_id: read::<AgentRunRequest>(&request)
                        .ok()
                        .and_then(|asked| asked.run_id)
                        .unwrap_or_default(),
                    error,
                    ..AgentRunResponse::default()
                };
                answer(&door.client, &request, &refused);
            }
        }
    }
    if let Some(run) = current {
        run.interrupt
            .raise(End::Operator("the agent was shut down".to_owned()));
        _ = run.ended.await;
    }
    Ok(())
}

fn endpoint(door: &AgentDoor) -> Result<Endpoint, EndpointError> {
    Endpoint::new(door, |name| std::env::var(name).ok())
}

fn read<T: DeserializeOwned>(request: &Request) -> Result<T, String> {
    if let Some(error) = request.refused() {
        return Err(error.to_owned());
    }
    let data = Value::Object(request.data().clone());
    serde_json::from_value(data).map_err(|error| format!("ValueError: {error}"))
}

fn answer(client: &Client, request: &Request, answer: &impl Serialize) {
    if let Err(error) = client.answer(request, answer) {
        tracing::warn!(%error, topic = request.topic(), "an answer was not sent");
    }
}

/// Answers a run, even if the bus comes back only later.
async fn answer_at_last(door: &Door, request: &Request, answer: &impl Serialize) {
    let client = &door.client;
    let mut news = client.events();
    let sent = async {
        while let Err(error) = client.answer(request, answer) {
            tracing::warn!(%error, "cannot send the answer of a run yet: waiting for the bus");
            // The time limit also covers the loss of that news.
            _ = timeout(AGAIN, news.next()).await;
        }
    };
    let given_up = async {
        tokio::select! {
            () = sleep(KEPT) => {}
            () = async { door.shutdown.cancelled().await; sleep(AGAIN).await } => {}
        }
    };
    tokio::select! {
        biased;
        () = sent => {}
        () = given_up => tracing::error!("gave up sending the answer of a run: the bus is still disconnected"),
    }
}

fn cancel(client: &Client, request: &Request, current: Option<&CurrentRun>) {
    let query: Result<AgentCancelRequest, String> = read(request);
    let (run_id, error) = match query {
        Err(error) => (String::new(), Some(error)),
        Ok(AgentCancelRequest { run_id }) => match current.filter(|run| run.run_id == run_id) {
            Some(run) => {
                run.interrupt
                    .raise(End::Operator("ovos.tools.agent.cancel".to_owned()));
                (run_id, None)
            }
            None => {
                let error = format!("ValueError: no run '{run_id}' is in progress");
                (run_id, Some(error))
            }
        },
    };
    let cancelled = error.is_none();
    let response = AgentCancelResponse {
        run_id,
        cancelled,
        error,
    };
    answer(client, request, &response);
}

/// Begins the run that a request asks for. The error has the request's run_id.
fn begin(
    door: &Arc<Door>,
    settings: &impl Fn() -> Settings,
    view: &Audience,
    request: &Request,
    current: Option<&CurrentRun>,
) -> Result<CurrentRun, (String, String)> {
    let query: AgentRunRequest = read(request).map_err(|error| (String::new(), error))?;
    let mut settings = settings();
    if let Some(run_id) = query.run_id {
        settings.run_id = run_id;
    }
    let run_id = settings.run_id.clone();
    let refuse = |why: &str| Err((run_id.clone(), why.to_owned()));
    let client = door
        .client_for(request, WORK)
        .map_err(|refused| (run_id.clone(), refused))?;
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    if run_id.is_empty() || run_id.len() > 128 || !run_id.bytes().all(good) {
        return refuse("ValueError: run_id: expected 1 to 128 characters of [A-Za-z0-9._:-]");
    }
    let goal = query.goal.trim();
    if goal.is_empty() || goal.chars().count() > LONGEST {
        return refuse("ValueError: goal: expected 1 to 4096 characters");
    }
    if let Some(current) = current {
        let busy = format!(
            "BusyError: run '{}' is in progress; the agent pursues one goal at a time",
            current.run_id
        );
        return refuse(&busy);
    }
    goal.clone_into(&mut settings.goal);
    settings.dry_run |= query.dry_run;
    let budgets = query.budgets.unwrap_or_default();
    let numbers = [budgets.rotation_deg, budgets.forward_m, budgets.battery_pct];
    if numbers
        .into_iter()
        .flatten()
        .any(|number| !(0.0..).contains(&number))
    {
        return refuse("ValueError: budgets: rotation_deg, forward_m and battery_pct: expected 0 or more");
    }
    let narrower = BudgetOverrides {
        steps: budgets.steps,
        calls: budgets.calls,
        time: budgets.time_ms.map(Duration::from_millis),
        tokens: budgets.tokens,
        rotation_deg: budgets.rotation_deg,
        forward_m: budgets.forward_m,
        battery_pct: budgets.battery_pct,
        ..BudgetOverrides::default()
    };
    narrower.narrow(&mut settings.door.budgets);
    let endpoint =
        endpoint(&settings.door).map_err(|error| (run_id.clone(), format!("ConfigError: {error}")))?;
    let interrupt = Interrupt::new();
    let audience = if query.progress {
        told_on_bus(&door.client, request, &run_id, view)
    } else {
        Arc::clone(view)
    };
    let run = {
        let (door, interrupt, request) = (Arc::clone(door), interrupt.clone(), request.clone());
        async move {
            let session = Session {
                door: &door,
                client,
                settings: &settings,
                interrupt: &interrupt,
                audience: &audience,
                person: None,
                session_id: request.session_id().map(str::to_owned),
            };
            let mut source = Source::Model(Box::new(endpoint));
            let response = response(&settings.run_id, session.run(&mut source)).await;
            answer_at_last(&door, &request, &response).await;
        }
    };
    Ok(CurrentRun {
        run_id,
        interrupt,
        ended: door.tasks.spawn(run),
    })
}

/// Returns the answer of a run. An internal failure ends the run, but it still has an answer; its calls end because the run is
/// dropped.
async fn response(
    run_id: &str,
    run: impl Future<Output = Result<SessionRun, RecordError>>,
) -> AgentRunResponse {
    let of_run = AgentRunResponse {
        run_id: run_id.to_owned(),
        ..AgentRunResponse::default()
    };
    match AssertUnwindSafe(run).catch_unwind().await {
        Err(_) => AgentRunResponse {
            error: Some("RuntimeError: the agent failed; its log has the reason".to_owned()),
            ..of_run
        },
        Ok(Err(error)) => AgentRunResponse {
            error: Some(format!("RuntimeError: {error}")),
            ..of_run
        },
        Ok(Ok(SessionRun { ended, .. })) => {
            let ok = matches!(ended.end, End::Done(_));
            AgentRunResponse {
                ok,
                reason: Some(ended.end.as_str().to_owned()),
                error: (!ok).then(|| format!("AgentError: {}", ended.text)),
                text: Some(ended.text),
                used: ended.used,
                elapsed_ms: ended.elapsed_ms,
                agent_end: ended.agent_end,
                ..of_run
            }
        }
    }
}

/// Combines the view and the client that asked for progress into one audience.
fn told_on_bus(client: &Client, request: &Request, run_id: &str, view: &Audience) -> Audience {
    let (client, request, run_id, view) = (
        client.clone(),
        request.clone(),
        run_id.to_owned(),
        Arc::clone(view),
    );
    let seq = AtomicU64::new(0);
    Arc::new(move |news: &News<'_>| {
        view(news);
        let progress = AgentProgress {
            run_id: run_id.clone(),
            seq: seq.fetch_add(1, Ordering::Relaxed) + 1,
            ..progress(news)
        };
        // If the bus is away, the progress is lost, like that of calls.
        _ = client.reply(&request, PROGRESS, &progress);
    })
}

fn progress(news: &News<'_>) -> AgentProgress {
    let text = |text: &str| Some(cut(text, SHOWN));
    let empty = AgentProgress::default();
    match news {
        News::Began { goal, .. } => AgentProgress {
            kind: AgentProgressKind::Began,
            text: text(goal),
            ..empty
        },
        News::Asking { step, left } => AgentProgress {
            kind: AgentProgressKind::Asking,
            step: Some(*step),
            left: Some((*left).clone()),
            ..empty
        },
        News::Thought(thought) => AgentProgress {
            kind: AgentProgressKind::Thought,
            text: text(thought),
            ..empty
        },
        News::Call { name, arguments, .. } => AgentProgress {
            kind: AgentProgressKind::Call,
            name: Some((*name).to_owned()),
            arguments: Some((*arguments).clone()),
            ..empty
        },
        News::Progress(of_call) => AgentProgress {
            kind: AgentProgressKind::CallProgress,
            name: Some(of_call.name.clone()),
            text: of_call.message.clone().or_else(|| of_call.action.clone()),
            ..empty
        },
        News::CallEnded {
            name,
            status,
            text: result,
            ..
        } => AgentProgress {
            kind: AgentProgressKind::Came,
            name: Some((*name).to_owned()),
            status: serde_json::to_value(status)
                .ok()
                .and_then(|word| word.as_str().map(str::to_owned)),
            text: text(result),
            ..empty
        },
        News::Ask { text: asked } | News::Confirm { text: asked, .. } => AgentProgress {
            kind: AgentProgressKind::Confirm,
            text: text(asked),
            ..empty
        },
        News::Ending { end } => AgentProgress {
            kind: AgentProgressKind::Ending,
            text: text(&end.text()),
            ..empty
        },
        News::Ended { end, .. } => AgentProgress {
            kind: AgentProgressKind::Ended,
            text: text(&end.text()),
            ..empty
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_run_that_panics_is_answered_with_its_id() {
        let answer = response("r1", async { panic!("a fault of the agent") }).await;
        assert_eq!((answer.run_id.as_str(), answer.ok), ("r1", false));
        let error = answer.error.expect("an error");
        assert!(error.starts_with("RuntimeError: the agent failed"), "{error}");
    }
}
