//! What the page asks for and what it does. Every request has passed the gate, and comes from a person who is signed in.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use client::payload::{
    CallOptions, ContentMode, ControlAnswer, ControlRequest, InvokeRequest, ListRequest, PlanRequest,
};
use client::{ClientError, Step, control, topic};
use door::ListedTool;
use futures_util::stream::{self, Stream};
use ovos_toolbox_wire::{Effect, Object};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use crate::console::Console;
use crate::history::query::{Filter, History};
use crate::history::store::StoreError;
use crate::people::Role;

/// How old the status may be that the page shows.
const AGE: Duration = Duration::from_millis(300);

/// How long the service may take for most requests.
const WAIT: Duration = Duration::from_secs(5);

/// How long each of the two ways of a stop may take; the page gives up after a second.
const STOP_WAIT: Duration = Duration::from_millis(400);

/// How many calls a page of the history has at most.
const ROWS: u32 = 1000;

/// Why a request is not carried out, as the page shows it.
pub(crate) struct Refused(StatusCode, String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": self.1 }))).into_response()
    }
}

impl From<ClientError> for Refused {
    fn from(error: ClientError) -> Self {
        Self(StatusCode::BAD_GATEWAY, error.to_string())
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    }
}

type Answer = Result<Json<Value>, Refused>;

/// Refuses a viewer what only an operator may do.
fn operators_only(role: Role) -> Result<(), Refused> {
    match role {
        Role::Operator => Ok(()),
        Role::Viewer => Err(Refused(
            StatusCode::FORBIDDEN,
            "only an operator may do this: sign in with the operator's token".to_owned(),
        )),
    }
}

/// What the page shows everywhere: the status, what waits to be approved, and the state of the history.
pub(crate) async fn state(State(console): State<Arc<Console>>, role: Role) -> Json<Value> {
    let waiting = console.control(&ControlRequest::Waiting {}, Duration::from_secs(1));
    let (status, waiting) = tokio::join!(console.door.client.recent_status(AGE), waiting);
    let (waiting, waiting_error) = match waiting {
        Ok(answer) => (answer.waiting.unwrap_or_default(), None),
        Err(Refused(_, why)) => (Vec::new(), Some(why)),
    };
    Json(json!({
        "role": role,
        "status": status.as_deref(),
        "waiting": waiting,
        "waiting_error": waiting_error,
        "history": *console.intake.trouble.lock(),
    }))
}

/// All tools with their schemas.
pub(crate) async fn tools(State(console): State<Arc<Console>>) -> Answer {
    let request = ListRequest {
        detail: true,
        ..ListRequest::default()
    };
    let tools = console.door.client.list(&request).await?;
    Ok(Json(json!({ "tools": tools })))
}

/// A tool and its arguments.
#[derive(Deserialize)]
pub(crate) struct ToolCall {
    toolbox_id: String,
    name: String,
    #[serde(default)]
    args: Object,
    #[serde(default)]
    call_id: Option<String>,
    /// The token of a confirmation.
    #[serde(default)]
    confirm: Option<String>,
}

/// The plan of a call.
pub(crate) async fn plan(State(console): State<Arc<Console>>, Json(wanted): Json<ToolCall>) -> Answer {
    let request = PlanRequest {
        name: wanted.name,
        args: wanted.args,
        toolbox_id: Some(wanted.toolbox_id),
    };
    let answer = console.door.client.ask(topic::PLAN, &request, WAIT).await?;
    Ok(Json(Value::Object(answer.data)))
}

/// Calls a tool and waits for its answer. If the page is closed, the call is ended.
pub(crate) async fn run(
    State(console): State<Arc<Console>>,
    role: Role,
    Json(wanted): Json<ToolCall>,
) -> Answer {
    let listing = console.door.refreshed().await;
    let is_it = |tool: &&Arc<ListedTool>| tool.toolbox_id == wanted.toolbox_id && tool.name == wanted.name;
    let Some(tool) = listing.callable().find(is_it).cloned() else {
        return Err(Refused(
            StatusCode::NOT_FOUND,
            format!(
                "toolbox {} is not loaded, or has no tool {}: reload the page",
                wanted.toolbox_id, wanted.name
            ),
        ));
    };
    if tool.effect != Effect::Read {
        operators_only(role)?;
    }
    let call_id = wanted.call_id.unwrap_or_else(|| door::own_id("console"));
    let request = InvokeRequest {
        name: wanted.name,
        args: wanted.args,
        toolbox_id: Some(wanted.toolbox_id),
        options: CallOptions {
            call_id: Some(call_id.clone()),
            detail: true,
            confirm: wanted.confirm,
            content: Some(ContentMode::Inline),
            ..CallOptions::default()
        },
    };
    let refused = |why: String| Refused(StatusCode::BAD_GATEWAY, why);
    let turn = console.door.arrivals().turn();
    let send = |patience| console.door.client.invoke(request, patience);
    let mut carried = console
        .door
        .carry(&turn, &tool, &call_id, send)
        .await
        .map_err(|why| refused(why.to_string()))?;
    loop {
        match carried.next().await {
            Ok(Step::Answer(answer)) => return Ok(Json(Value::Object(answer.data))),
            Ok(Step::Progress(_)) => {}
            Err(lost) => return Err(refused(lost.to_string())),
        }
    }
}

/// The id of a call.
#[derive(Deserialize)]
pub(crate) struct CallId {
    call_id: String,
}

/// Ends a call.
pub(crate) async fn cancel(
    State(console): State<Arc<Console>>,
    role: Role,
    Json(of): Json<CallId>,
) -> Answer {
    operators_only(role)?;
    let cancelled = console.door.client.cancel(&of.call_id).await?;
    Ok(Json(json!(cancelled)))
}

/// A toolbox to stop; all of them without one.
#[derive(Default, Deserialize)]
pub(crate) struct Stop {
    #[serde(default)]
    toolbox_id: Option<String>,
}

/// Stops in an emergency: over the bus and, where that does not answer at once, through the control socket. A body that cannot be
/// read stops everything.
pub(crate) async fn stop(State(console): State<Arc<Console>>, body: Result<Bytes, BytesRejection>) -> Answer {
    let wanted = body.ok().and_then(|body| serde_json::from_slice(&body).ok());
    let Stop { toolbox_id } = wanted.unwrap_or_default();
    let over_bus = console.door.client.stop(toolbox_id.as_deref());
    let missed = match tokio::time::timeout(STOP_WAIT, over_bus).await {
        Ok(Ok(stopped)) => return Ok(Json(json!(stopped))),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer over the bus within {} ms", STOP_WAIT.as_millis()),
    };
    let request = ControlRequest::Stop { toolbox_id };
    let answer = console.control(&request, STOP_WAIT).await;
    let answer = answer.map_err(|Refused(status, why)| Refused(status, format!("{missed}; {why}")))?;
    Ok(Json(json!({ "toolboxes": answer.toolboxes })))
}

/// A stop to lift.
#[derive(Deserialize)]
pub(crate) struct Lift {
    toolbox_id: String,
    stop_id: String,
}

/// Lifts a stop.
pub(crate) async fn resume(
    State(console): State<Arc<Console>>,
    role: Role,
    Json(Lift { toolbox_id, stop_id }): Json<Lift>,
) -> Answer {
    operators_only(role)?;
    let request = ControlRequest::Resume { toolbox_id, stop_id };
    let answer = console.control(&request, WAIT).await?;
    Ok(Json(json!(answer)))
}

/// A call that waits to be confirmed.
#[derive(Deserialize)]
pub(crate) struct PendingCall {
    id: String,
}

/// Lets a call run.
pub(crate) async fn approve(
    State(console): State<Arc<Console>>,
    role: Role,
    Json(PendingCall { id }): Json<PendingCall>,
) -> Answer {
    operators_only(role)?;
    let answer = console.control(&ControlRequest::Approve { id }, WAIT).await?;
    Ok(Json(json!(answer)))
}

/// Refuses a call.
pub(crate) async fn deny(
    State(console): State<Arc<Console>>,
    role: Role,
    Json(PendingCall { id }): Json<PendingCall>,
) -> Answer {
    operators_only(role)?;
    let answer = console.control(&ControlRequest::Deny { id }, WAIT).await?;
    Ok(Json(json!(answer)))
}

/// Which calls the page shows.
#[derive(Deserialize)]
pub(crate) struct Which {
    since_us: Option<i64>,
    tool: Option<String>,
    toolbox: Option<String>,
    session: Option<String>,
    #[serde(default)]
    failed: bool,
    limit: Option<u32>,
}

/// Calls of the history.
pub(crate) async fn calls(State(console): State<Arc<Console>>, Query(which): Query<Which>) -> Answer {
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let filter = Filter {
        since_us: which.since_us,
        tool: given(which.tool),
        toolbox: given(which.toolbox),
        session: given(which.session),
        failed: which.failed,
        limit: Some(which.limit.unwrap_or(100).min(ROWS)),
    };
    let calls = console.read(move |history| history.calls(&filter)).await?;
    Ok(Json(json!({ "calls": calls })))
}

/// The calls under way, with the facts so far.
pub(crate) async fn under_way(State(console): State<Arc<Console>>) -> Answer {
    let calls = console.read(History::under_way).await?;
    Ok(Json(json!({ "calls": calls })))
}

/// The place of a call in the history.
#[derive(Deserialize)]
pub(crate) struct Place {
    run: i64,
    call: i64,
}

/// One call with its facts.
pub(crate) async fn call(State(console): State<Arc<Console>>, Query(place): Query<Place>) -> Answer {
    let Place { run, call } = place;
    let found = console.read(move |history| {
        let row = history.call(run, call)?;
        let facts = history.facts(run, call)?;
        Ok(row.map(|row| row.with_facts(&facts)))
    });
    let missing = || {
        Refused(
            StatusCode::NOT_FOUND,
            "the history does not have this call".to_owned(),
        )
    };
    Ok(Json(found.await?.ok_or_else(missing)?))
}

/// The facts as they are written. A page that falls behind gets `reset`, and asks again for what it shows.
pub(crate) async fn facts(
    State(console): State<Arc<Console>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let live = console.intake.live.subscribe();
    let end = console.door.shutdown.clone();
    let opening = Event::default().event("begun").data("{}");
    let events = stream::unfold(
        (live, end, Some(opening)),
        |(mut live, end, opening)| async move {
            if let Some(opening) = opening {
                return Some((Ok(opening), (live, end, None)));
            }
            let received = tokio::select! {
                received = live.recv() => received,
                () = end.cancelled() => return None,
            };
            let event = match received {
                Ok(line) => Event::default().data(&*line),
                Err(RecvError::Lagged(_)) => Event::default().event("reset").data("{}"),
                Err(RecvError::Closed) => return None,
            };
            Some((Ok(event), (live, end, None)))
        },
    );
    Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(5)))
}

impl Console {
    /// Asks the service through its control socket.
    async fn control(&self, request: &ControlRequest, wait: Duration) -> Result<ControlAnswer, Refused> {
        let socket = &self.intake.socket;
        match control::ask(socket, request, wait).await {
            Ok((
                _,
                ControlAnswer {
                    error: Some(error), ..
                },
            )) => Err(Refused(StatusCode::CONFLICT, error)),
            Ok((_, answer)) => Ok(answer),
            Err(cause) => Err(Refused(
                StatusCode::BAD_GATEWAY,
                format!("the service does not answer at {}: {cause}", socket.display()),
            )),
        }
    }

    /// Reads the history.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&History) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Refused> {
        let path = self.intake.file.clone();
        let read = tokio::task::spawn_blocking(move || {
            let history = History::open(&path)?;
            read(&history).map_err(|cause| StoreError::Database { path, cause })
        });
        let read = read
            .await
            .map_err(|cause| Refused(StatusCode::INTERNAL_SERVER_ERROR, cause.to_string()))?;
        Ok(read?)
    }
}
