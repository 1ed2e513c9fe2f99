//! Between the plugin side and everything else.
//!
//! Puts what the plugin manager loads into the engine and the registry, drains what it replaces, and carries events,
//! messages and questions of toolboxes to and from the bus. Read [`Bridge`].

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{Event, Failure, Object};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::bus_outbox::BusOutbox;
use super::configuration::Configuration;
use super::questions::{Question, Questions};
use super::router::{Deliveries, Router};
use super::state::LatchFile;
use super::{ServiceError, bus_status};
use crate::api::{
    BusStatus, EventMessage, FailedFile, Outbox, ReloadOutcome, ServiceStatus, ToolboxStatus, Toolboxes,
};
use crate::bus::Message;
use crate::config::{CallLimits, Config};
use crate::engine::{Engine, Limits, StopTarget};
use crate::plugin::{HostServices, InProcess, Library, Open, Origin, Request};
use crate::registry::{Registry, Snapshot, Tool, ToolboxEntry, ToolboxState};

/// What the bridge is made of.
pub(super) struct Parts {
    pub(super) configuration: Configuration,
    pub(super) engine: Arc<Engine>,
    pub(super) registry: Arc<Registry>,
    pub(super) outbox: Arc<BusOutbox>,
    pub(super) latches: LatchFile,
    pub(super) tracker: TaskTracker,
    pub(super) end: CancellationToken,
}

/// Connects toolboxes with the service.
pub(super) struct Bridge {
    parts: Parts,
    begun: Instant,
    router: OnceLock<Arc<Router>>,
    questions: Questions,
    backends: Mutex<BTreeMap<String, Value>>,
    live: Mutex<Vec<Arc<InProcess>>>,
    failed: Mutex<Vec<FailedFile>>,
}

impl Bridge {
    pub(super) fn start(parts: Parts) -> Result<Arc<Self>, ServiceError> {
        Ok(Arc::new(Self {
            parts,
            begun: Instant::now(),
            router: OnceLock::new(),
            questions: Questions::default(),
            backends: Mutex::default(),
            live: Mutex::default(),
            failed: Mutex::default(),
        }))
    }

    pub(super) fn connect_router(&self, router: Arc<Router>) {
        if self.router.set(router).is_err() {
            tracing::error!("the router was connected twice");
        }
    }

    pub(super) async fn load(self: &Arc<Self>) {
        let config = self.parts.configuration.newest();
        let mut entries = Vec::new();
        for dir in &config.service.plugins_dir {
            let Ok(files) = std::fs::read_dir(dir) else { continue };
            for file in files.flatten() {
                let path = file.path();
                if path.extension().is_none_or(|e| e != "so") {
                    continue;
                }
                let library = Arc::new(Library::load(&path, &path).unwrap());
                let id = library.manifest().id.clone();
                let open = Open {
                    generation: 1,
                    config: Value::Object(config.toolbox(&id).unwrap().own.clone()).to_string(),
                    stop_epoch: 0,
                    limits: crate::plugin::Limits::default(),
                };
                let services: Arc<dyn HostServices> = Arc::new(self.clone());
                let toolbox = Arc::new(InProcess::open(library, open, services).await.unwrap());
                let tools = toolbox.tools().await.unwrap();
                self.parts.engine.attach(&id, 1, toolbox.clone(), engine_limits(&config.toolbox(&id).unwrap().limits, &config));
                entries.push(ToolboxEntry {
                    toolbox_id: id.clone(),
                    generation: 1,
                    state: ToolboxState::Ready,
                    tools: tools.tools.into_iter().map(|t| Arc::new(Tool::new(&id, 1, t).unwrap())).collect(),
                });
                lock(&self.live).push(toolbox);
            }
        }
        self.parts.registry.swap(Snapshot::new(entries));
        let topics: HashSet<String> = lock(&self.live)
            .iter()
            .flat_map(|t| {
                let manifest = t.manifest();
                let answers = manifest.requests.iter().map(|topic| format!("{topic}.response"));
                manifest.subscribes.iter().cloned().chain(answers).collect::<Vec<_>>()
            })
            .collect();
        if let Some(router) = self.router.get() {
            router.listen_to(topics);
        }
    }

    pub(super) async fn shut_down(&self) {
        let live = lock(&self.live).clone();
        for toolbox in live {
            toolbox.close().await;
        }
    }

    fn event(&self, toolbox_id: &str, event: Event) {
        let data = EventMessage {
            toolbox_id: toolbox_id.to_owned(),
            kind: event.kind,
            severity: event.severity,
            data: event.data,
            ts: now(),
        };
        let Ok(Value::Object(data)) = serde_json::to_value(&data) else { return };
        let mut message = Message::new("ovos.tools.event", data);
        message.context.insert("source".to_owned(), Value::from("ovos_tools"));
        let session = serde_json::json!({ "session_id": crate::bus::DEFAULT_SESSION_ID });
        message.context.insert("session".to_owned(), session);
        self.parts.outbox.notify(message.to_text());
    }

    fn respond(&self, question: &Question, answer: &Result<Value, Failure>) {
        let live = lock(&self.live).clone();
        let asked = |toolbox: &&Arc<InProcess>| {
            let origin = toolbox.origin();
            *origin.toolbox_id == *question.toolbox_id && origin.generation == question.generation
        };
        if let Some(toolbox) = live.iter().find(asked) {
            toolbox.respond(question.request, answer);
        }
    }
}

impl HostServices for Arc<Bridge> {
    fn event(&self, origin: &Origin, event: Event) {
        match event.kind.as_str() {
            "backend" => {
                let state = event.data.clone().unwrap_or_default();
                lock(&self.backends).insert(origin.toolbox_id.to_string(), state);
            }
            "latched" => self.latched(origin, &event),
            _ => {}
        }
        Bridge::event(self, &origin.toolbox_id, event);
    }

    fn request(&self, origin: &Origin, request: Request) {
        let Request { id, topic, data, timeout } = request;
        let question =
            Question { toolbox_id: origin.toolbox_id.to_string(), generation: origin.generation, request: id };
        let data = match data {
            Value::Object(data) => data,
            _ => Object::new(),
        };
        let (message, session) = self.questions.ask(question, &topic, data);
        self.parts.outbox.notify(message.to_text());
        let (bridge, end) = (self.clone(), self.parts.end.clone());
        self.parts.tracker.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(timeout) => {}
                () = end.cancelled() => {}
            }
            if let Some(question) = bridge.questions.give_up(&session) {
                let late = format!("nobody answered `{topic}` within {} ms", timeout.as_millis());
                bridge.respond(&question, &Err(Failure::new("TimeoutError", late)));
            }
        });
    }
}

impl Bridge {
    /// The toolbox has stopped by itself (a button, a fall): the service's latch follows.
    fn latched(self: &Arc<Self>, origin: &Origin, event: &Event) {
        let reason = event.data.as_ref().and_then(|data| data.get("reason")?.as_str());
        let reason = format!("the toolbox itself: {}", reason.unwrap_or("no reason given"));
        let target = StopTarget::Toolboxes(vec![origin.toolbox_id.to_string()]);
        let stopped = self.parts.engine.stop(&target, &reason);
        let bridge = self.clone();
        self.parts.tracker.spawn(async move {
            stopped.await;
            bridge.latches_changed().await;
        });
    }
}

impl Deliveries for Bridge {
    fn deliver(&self, message: &Message) {
        if let Some(question) = self.questions.answered(message) {
            self.respond(&question, &Ok(Value::Object(message.data.clone())));
        }
        let live = lock(&self.live).clone();
        for toolbox in live {
            if toolbox.manifest().subscribes.contains(&message.kind) {
                toolbox.message(&message.kind, &Value::Object(message.data.clone()).to_string());
            }
        }
    }

    fn configuration_updated(&self) {
        self.parts.configuration.read_again();
    }

    fn configuration_patched(&self, head: &Message, data: &Object) {
        self.parts.configuration.patch(head, data);
    }
}

impl Toolboxes for Bridge {
    fn reload(&self) -> BoxFuture<'_, ReloadOutcome> {
        Box::pin(async { ReloadOutcome::default() })
    }

    fn toolboxes(&self) -> Vec<ToolboxStatus> {
        let backends = lock(&self.backends).clone();
        let live = lock(&self.live).clone();
        let snapshot = self.parts.registry.snapshot();
        let status = |toolbox: &Arc<InProcess>| {
            let id = toolbox.origin().toolbox_id.to_string();
            ToolboxStatus {
                state: "ready".to_owned(),
                isolation: "in_process".to_owned(),
                generation: toolbox.origin().generation,
                version: toolbox.manifest().version.clone(),
                path: toolbox.library().path().display().to_string(),
                tools: snapshot.toolbox(&id).map_or(0, |entry| entry.tools.len()),
                backend: backends.get(&id).cloned(),
                toolbox_id: id,
                ..ToolboxStatus::default()
            }
        };
        live.iter().map(status).collect()
    }

    fn failed_files(&self) -> Vec<FailedFile> {
        lock(&self.failed).clone()
    }

    fn service(&self) -> ServiceStatus {
        ServiceStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            ready: false,
        }
    }

    fn bus(&self) -> BusStatus {
        let dropped = self.router.get().map_or(0, |router| router.dropped());
        bus_status(self.parts.outbox.client(), &self.parts.configuration.applied().bus.url, dropped)
    }

    fn pending_config(&self) -> Vec<String> {
        let applied = self.parts.configuration.applied().clone();
        self.parts.configuration.pending(&applied)
    }

    fn latches_changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let latched = self.parts.engine.latched();
            if let Err(error) = self.parts.latches.write(&latched) {
                tracing::error!(%error, "cannot remember which toolboxes are in emergency stop");
            }
        })
    }
}

fn engine_limits(limits: &CallLimits, config: &Config) -> Limits {
    Limits {
        max_waiting: limits.max_waiting,
        max_wait: limits.max_wait,
        plan: config.service.plan,
        default_timeout: limits.default_timeout,
        grace: limits.grace,
        settle: limits.settle,
        safe_limit: limits.safe_limit,
        ..Limits::default()
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0.0, |since| since.as_secs_f64())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
