//! The tools API: the requests of bus clients, and the answer to each.
//!
//! Each topic family has a file. A request is answered with exactly one frame, or with none where the contract
//! prescribes silence. Nothing here opens a socket, loads a library or runs an action. No other module maps outcomes
//! to the wire. Read [`Api::handle`].

mod absence;
mod actions;
mod asking;
mod cancel;
mod discover;
mod error;
mod export;
mod invoke;
mod list;
mod permit;
mod plan;
mod progress;
mod refuse;
mod reload;
mod request;
mod resolve;
mod run;
mod run_course;
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
use tokio::sync::watch;

use crate::content::Store;
use crate::policy::{Backends, Policy};
use crate::registry::Registry;
use bus::{Message, OWN_KEY};
use client::payload::OffToolbox;
use engine::Engine;

pub use client::payload::{
    BusStatus, EventMessage, FailedFile, IsReady, PythonStatus, ReloadOutcome, ServiceStatus, StatusResponse,
    ToolboxStatus,
};
pub use error::WireError;
pub(crate) use refuse::instead;
pub use topic::{SERVICE_NAME, Topic, Urgent};

/// The destination of frames. The service implements it with the bus client.
pub trait Outbox: Send + Sync + 'static {
    /// Sends an answer. It waits for room in the queue and survives a loss of the bus.
    fn answer(&self, frame: String) -> BoxFuture<'_, ()>;
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
        }
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
            settings,
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
        let head = &request.head;
        self.wait_for_start(&topic, &request).await;
        match topic {
            Topic::List => self.answer(head, &self.list(&request)).await,
            Topic::Get => self.answer(head, &self.get(&request)).await,
            Topic::Invoke => {
                let answer = self.invoke(&request).await;
                self.answer(head, &answer).await;
                self.content.answered(&answer.content);
            }
            Topic::Run => {
                let answer = self.run_steps(&request).await;
                self.answer(head, &answer).await;
                for step in &answer.steps {
                    self.content.answered(&step.content);
                }
            }
            Topic::Reload => {
                let answer = self.reload(&request).await;
                self.answer(head, &answer).await;
            }
            Topic::Plan => {
                let answer = self.plan(&request).await;
                self.answer(head, &answer).await;
            }
            Topic::Export => self.answer(head, &self.export(&request)).await,
            Topic::Cancel => self.answer(head, &self.cancel(&request)).await,
            Topic::Status => self.answer(head, &self.status()).await,
            Topic::Resume => {
                let answer = self.resume(&request).await;
                self.answer(head, &answer).await;
            }
            Topic::Discover => {
                for answer in self.discover() {
                    self.answer(head, &answer).await;
                }
            }
            Topic::Call { ref toolbox_id } => {
                if let Some(answer) = self.call(&request, toolbox_id.as_deref()).await {
                    self.answer(head, &answer).await;
                    self.content.answered(&answer.content);
                }
            }
            Topic::IsReady => {
                let status = self.ready.load(Ordering::Relaxed);
                self.answer(head, &IsReady { status }).await;
            }
            Topic::AllLoaded => {
                let status = self.serves_all();
                self.answer(head, &IsReady { status }).await;
            }
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

    async fn answer<T: Serialize + Sync>(&self, head: &Message, data: &T) {
        let kind = format!("{}.response", head.kind);
        let limit = self.settings.max_answer_bytes;
        match frame(head, &kind, data) {
            Ok(frame) if frame.len() <= limit => self.outbox.answer(frame).await,
            Ok(large) => {
                let bytes = large.len();
                let instead = [
                    refuse::without_content(data, bytes, limit),
                    refuse::without_results(data, bytes, limit),
                    Some(refuse::too_large(data, bytes, limit)),
                ];
                let mut frames = instead.iter().flatten();
                let small = frames.find_map(|data| {
                    let frame = frame(head, &kind, data).ok()?;
                    (frame.len() <= limit).then_some(frame)
                });
                if let Some(small) = small {
                    return self.outbox.answer(small).await;
                }
                tracing::error!(%kind, limit, "a request's context alone is larger than the bus takes");
            }
            Err(error) => tracing::error!(%kind, %error, "an answer cannot be written as JSON"),
        }
    }
}

/// Serializes a reply to the sender of `head`.
fn frame<T: Serialize>(head: &Message, kind: &str, data: &T) -> Result<String, serde_json::Error> {
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
    serde_json::to_string(&Frame {
        r#type: kind,
        data,
        context: &derived.context,
    })
}
