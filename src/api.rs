//! The tools API: the requests of bus clients, and the answer to each.
//!
//! Each topic family has a file. A request is answered with exactly one frame, or with none where the contract
//! prescribes silence. Nothing here opens a socket, loads a library or runs an action. No other module maps outcomes
//! to the wire. Read [`Api::handle`].

mod absence;
mod actions;
mod arguments;
mod asking;
mod cancel;
mod discover;
mod error;
mod export;
mod invoke;
mod list;
mod lists;
mod paged;
mod permit;
mod plan;
mod progress;
mod refuse;
mod reload;
mod request;
mod resolve;
mod run;
mod run_course;
mod sentence;
mod status;
mod steps;
#[cfg(test)]
mod steps_tests;
mod stop;
mod topic;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{Effect, Object};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::content::Store;
use crate::policy::{Backends, Policy};
use crate::registry::{Registry, Tool};
use bus::{Message, OWN_KEY};
use client::payload::OffToolbox;
use engine::Engine;
use lists::Lists;
use paged::Begun;
use status::asks_for_guides;

pub use client::payload::{
    BusStatus, EventMessage, FailedFile, IsReady, PythonStatus, ReloadOutcome, ServiceStatus, StatusResponse,
    ToolboxStatus,
};
pub use error::WireError;
pub(crate) use refuse::instead;
pub use topic::{SERVICE_NAME, Topic, Urgent};

/// With more calls under way than this, the answer to a status request is made on a thread for blocking work.
const MANY_CALLS: usize = 256;

/// The destination of frames. The service implements it with the bus client.
pub trait Outbox: Send + Sync + 'static {
    /// Sends an answer. It waits for room in the queue and survives a loss of the bus.
    fn answer(&self, frame: String) -> BoxFuture<'_, ()>;
    /// As [`answer`](Self::answer), for a short answer that must not wait for others: the answer to a stop.
    fn answer_urgent(&self, frame: String) -> BoxFuture<'_, ()>;
    /// Sends a message that is useless later: it is dropped if the queue is full or the bus is away.
    fn notify(&self, frame: String);
}

/// The toolboxes and the service, as far as the API needs them.
pub trait Toolboxes: Send + Sync + 'static {
    /// Loads, replaces and removes toolboxes until they match the plugin folders. Resolves after the swap.
    fn reload(&self) -> BoxFuture<'_, ReloadOutcome>;
    /// Returns the service, its connection, every toolbox, loaded or not, the files that could not be loaded, and the
    /// configuration keys whose new values take effect only when their toolbox is reloaded or the service restarts. Latches, calls
    /// and counters are left out: the API adds them.
    fn status(&self) -> StatusResponse;
    /// Returns what this generation of a toolbox has reported about the machines that it drives.
    fn backends(&self, toolbox_id: &str, generation: u64) -> Backends;
    /// Returns why tools of this effect are refused, if the configuration with which the toolbox was loaded could not be read.
    fn closed(&self, _toolbox_id: &str, _effect: Effect) -> Option<String> {
        None
    }
    /// What the configuration can say of a tool whose effect nothing states, for the person who is asked about it.
    fn note(&self, _tool: &Tool) -> Option<String> {
        None
    }
    /// The toolboxes that are installed and not loaded, although nothing is wrong with them.
    fn off(&self) -> Arc<[OffToolbox]> {
        Arc::default()
    }
    /// Records the latches, so that they survive a restart of the service. The error tells why they are not recorded, or that the
    /// outcome is not known yet: the wait for the disk is as short as the wait for a toolbox.
    fn latches_changed(&self) -> BoxFuture<'_, Result<(), String>>;
}

/// What the configuration says about the API.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether tools of effect `resume` can be invoked.
    pub operator_tools: bool,
    /// The rules of who may call which tools.
    pub policy: Arc<Policy>,
    /// The largest frame the bus takes, in bytes.
    pub max_answer_bytes: usize,
    /// The folder of the toolboxes' content.
    pub content_dir: PathBuf,
}

/// A parsed request.
#[derive(Debug)]
pub struct Request {
    /// Its type and context; its data is moved out.
    pub head: Message,
    /// Its payload.
    pub data: Arc<Object>,
    /// When it was read.
    pub received: Instant,
    /// The step of a run, if the request is one.
    step: Option<InRun>,
    /// Whether its answer goes before others.
    urgent: bool,
}

/// A step of a run. Its progress is reported as progress of the run.
#[derive(Clone, Debug)]
struct InRun {
    /// The call_id of the run.
    run_id: String,
    /// The id of the step.
    id: String,
    /// When the request of the run was read.
    received: Instant,
    /// Whether it takes values from the results of other steps.
    takes_values: bool,
}

impl Request {
    /// Creates a request of this type and context.
    #[must_use]
    pub fn new(head: Message, data: Object, received: Instant) -> Self {
        Self {
            head,
            data: Arc::new(data),
            received,
            step: None,
            urgent: false,
        }
    }

    /// Creates a request for a stop, whose answer must not wait for others.
    #[must_use]
    pub fn of_stop(head: Message, data: Object, received: Instant) -> Self {
        Self {
            urgent: true,
            ..Self::new(head, data, received)
        }
    }

    /// The `call_id` to put into the answer. The answer to a cancel has the id of the call that it cancels under that key anyway.
    fn call_id(&self) -> Option<&str> {
        let cancels = Topic::of(&self.head.kind, false) == Some(Topic::Cancel);
        self.data
            .get("call_id")
            .and_then(serde_json::Value::as_str)
            .filter(|id| !cancels && request::is_call_id(id))
    }
}

/// Answers requests.
pub struct Api {
    engine: Arc<Engine>,
    registry: Arc<Registry>,
    toolboxes: Arc<dyn Toolboxes>,
    outbox: Arc<dyn Outbox>,
    settings: Settings,
    content: Store,
    lists: Lists,
    begun: Begun,
    ready: AtomicBool,
    all_loaded: watch::Sender<bool>,
    /// The number of requests of every topic since the start.
    requests: AtomicU64,
    call_ids: AtomicU64,
}

impl Api {
    /// Creates the API. It reports that it is not ready until [`Self::set_ready`].
    #[must_use]
    pub fn new(
        engine: Arc<Engine>,
        registry: Arc<Registry>,
        toolboxes: Arc<dyn Toolboxes>,
        outbox: Arc<dyn Outbox>,
        settings: Settings,
    ) -> Self {
        Self {
            engine,
            registry,
            toolboxes,
            outbox,
            content: Store::new(settings.content_dir.clone()),
            begun: Begun::new(settings.max_answer_bytes),
            settings,
            lists: Lists::default(),
            ready: AtomicBool::new(false),
            all_loaded: watch::Sender::new(false),
            requests: AtomicU64::new(0),
            call_ids: AtomicU64::new(0),
        }
    }

    /// Sets the answer to `is_ready`.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }

    /// Declares that every toolbox is loaded or has failed. From now on a tool that is missing is unknown.
    pub fn set_all_loaded(&self) {
        self.all_loaded.send_replace(true);
    }

    /// Resolves when every toolbox is loaded or has failed.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn all_loaded(&self) {
        // The sender is part of `self`, so this ends with a value.
        _ = self.all_loaded.subscribe().wait_for(|loaded| *loaded).await;
    }

    /// Answers one request. Configuration topics are ignored: the service handles them.
    ///
    /// # Cancel safety
    /// Not safe: the request stays unanswered. The service drops it only when the service itself ends.
    pub async fn handle(self: &Arc<Self>, topic: Topic, request: Request) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.wait_for_start(&topic, &request).await;
        if matches!(topic, Topic::List | Topic::Export | Topic::Discover) {
            return self.answer_list(topic, request).await;
        }
        match topic {
            Topic::Get => self.answer(&request, &self.get(&request)).await,
            Topic::Invoke => {
                let answer = self.invoke(&request).await;
                self.answer(&request, &answer).await;
                self.content.answered(&answer.content);
            }
            Topic::Run => {
                let answer = self.run_steps(&request).await;
                self.answer(&request, &answer).await;
                for step in &answer.steps {
                    self.content.answered(&step.content);
                }
            }
            Topic::Reload => {
                let answer = self.reload(&request).await;
                self.answer_apart(request, move |_| answer).await;
            }
            Topic::Plan => {
                let answer = self.plan(&request).await;
                self.answer(&request, &answer).await;
            }
            Topic::Cancel => self.answer(&request, &self.cancel(&request)).await,
            Topic::Status if self.engine.calls_in_flight() > MANY_CALLS => {
                let guides = asks_for_guides(&request);
                self.answer_apart(request, move |api| api.status_for(guides))
                    .await;
            }
            Topic::Status => {
                let status = self.status_for(asks_for_guides(&request));
                self.answer(&request, &status).await;
            }
            Topic::Resume => {
                let answer = self.resume(&request).await;
                self.answer(&request, &answer).await;
            }
            Topic::Call { ref toolbox_id } => {
                if let Some(answer) = self.call(&request, toolbox_id.as_deref()).await {
                    self.answer(&request, &answer).await;
                    self.content.answered(&answer.content);
                }
            }
            Topic::IsReady => {
                let status = self.ready.load(Ordering::Relaxed);
                self.answer(&request, &IsReady { status }).await;
            }
            Topic::AllLoaded => {
                let status = self.serves_all();
                self.answer(&request, &IsReady { status }).await;
            }
            Topic::List | Topic::Export | Topic::Discover => {}
            Topic::ConfigurationUpdated | Topic::ConfigurationPatch | Topic::ConfigurationPatchClear => {}
        }
    }

    /// Removes content whose time is over, from time to time and after each answer with content. Never ends.
    ///
    /// # Cancel safety
    /// A sweep that has begun goes on.
    pub async fn sweep_content(&self) {
        self.content.keep_swept().await;
    }

    /// Answers a request, with the `call_id` that it gave; the answer to an urgent one goes before others.
    async fn answer<T: Serialize + Sync>(&self, request: &Request, data: &T) {
        match self.frame_of(request, data) {
            Some(frame) if request.urgent => self.outbox.answer_urgent(frame).await,
            Some(frame) => self.outbox.answer(frame).await,
            None => {}
        }
    }

    /// Answers with what may be long, made on a thread for blocking work.
    async fn answer_apart<T: Serialize>(
        self: &Arc<Self>,
        request: Request,
        data: impl FnOnce(&Self) -> T + Send + 'static,
    ) {
        let api = self.clone();
        let made = tokio::task::spawn_blocking(move || api.frame_of(&request, &data(&api))).await;
        if let Ok(Some(frame)) = made {
            self.outbox.answer(frame).await;
        }
    }

    /// The frame of an answer, or what is sent in place of one that is too large.
    fn frame_of<T: Serialize>(&self, request: &Request, data: &T) -> Option<String> {
        let kind = format!("{}.response", request.head.kind);
        let limit = self.settings.max_answer_bytes;
        match frame(&request.head, request.call_id(), &kind, data) {
            Ok(frame) if frame.len() <= limit => Some(frame),
            Ok(large) => {
                let bytes = large.len();
                let instead = [
                    refuse::without_content(data, bytes, limit),
                    refuse::without_results(data, bytes, limit),
                    refuse::without_tools(data, bytes, limit),
                    Some(refuse::too_large(data, bytes, limit)),
                ];
                let mut frames = instead.iter().flatten();
                let small = frames.find_map(|data| {
                    let frame = frame(&request.head, request.call_id(), &kind, data).ok()?;
                    (frame.len() <= limit).then_some(frame)
                });
                if small.is_none() {
                    tracing::error!(%kind, limit, "a request's context alone is larger than the bus takes");
                }
                small
            }
            Err(error) => {
                tracing::error!(%kind, %error, "an answer cannot be written as JSON");
                None
            }
        }
    }
}

/// Serializes a reply to the sender of `head`. This is the one place that puts the request's `call_id` into an answer, so that a
/// client can tell its own answers under every topic.
fn frame<T: Serialize>(
    head: &Message,
    call_id: Option<&str>,
    kind: &str,
    data: &T,
) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Frame<'a, T> {
        r#type: &'a str,
        data: &'a T,
        context: &'a Object,
    }
    let mut derived = head.reply(kind, Object::new());
    // The request may be a reply to an answer that was sent again, and so carry that answer's mark. This answer is sent for the
    // first time.
    derived.context.shift_remove(OWN_KEY);
    let context = &derived.context;
    let Some(call_id) = call_id else {
        return serde_json::to_string(&Frame {
            r#type: kind,
            data,
            context,
        });
    };
    let data = RawValue::from_string(with_call_id(serde_json::to_string(data)?, call_id))?;
    serde_json::to_string(&Frame {
        r#type: kind,
        data: &data,
        context,
    })
}

/// Appends a `call_id` to the text of an object. (A tool of `get` is text that is made when its toolbox is loaded, which serde
/// cannot flatten into a struct.)
fn with_call_id(mut object: String, call_id: &str) -> String {
    if object.pop() == Some('}') {
        let comma = if object.len() > 1 { "," } else { "" };
        // The characters that a call_id may have need no escape.
        object += &format!("{comma}\"call_id\":\"{call_id}\"}}");
    }
    object
}
