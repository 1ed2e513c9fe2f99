//! Connects the plugin manager with the rest of the service.
//!
//! Publishes loaded toolboxes to the engine and the registry, drains replaced ones, and passes events, messages and
//! requests between toolboxes and the bus. Read [`Bridge`].

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{Effect, Event, Failure, FailureKind, Object};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::bus_outbox::BusOutbox;
use super::bus_status::bus_status;
use super::configuration::Configuration;
use super::deliveries::Deliveries;
use super::error::ServiceError;
use super::fact_record::FactRecord;
use super::listing::{
    TakenNames, entry, failed_file, known_ids, python, renamed, renamed_of, step_tools, topics,
};
use super::loaded_configs::LoadedConfigs;
use super::questions::{Question, Questions};
use super::router::Router;
use super::settings::{engine_limits, manager_settings};
use super::started_doors::StartedDoors;
use super::{admission, effects, warnings};
use crate::api::{
    EventMessage, Outbox, ReloadOutcome, ServiceStatus, StatusResponse, ToolboxStatus, Toolboxes,
};
use crate::policy::{Backends, Policy};
use crate::registry::{Registry, Snapshot, Tool};
use bus::Message;
use client::payload::OffToolbox;
use config::{Config, Lockdown};
use engine::Engine;
use host::state::{ANSWER, StateWriter};
use host::{Drain, HostServices, Live, LiveToolbox, Manager, Origin, Request, State};

/// The parts that the bridge connects.
pub(super) struct Parts {
    pub(super) policy: Arc<Policy>,
    /// What the upgrade before this start changed for the configuration.
    pub(super) upgraded: Vec<String>,
    pub(super) configuration: Arc<Configuration>,
    pub(super) engine: Arc<Engine>,
    pub(super) registry: Arc<Registry>,
    pub(super) outbox: Arc<BusOutbox>,
    pub(super) state: Arc<StateWriter>,
    pub(super) record: Arc<FactRecord>,
    pub(super) started_doors: Arc<StartedDoors>,
    pub(super) tracker: TaskTracker,
    pub(super) end: CancellationToken,
}

/// Connects toolboxes with the service.
pub(super) struct Bridge {
    parts: Parts,
    begun: Instant,
    /// Weak, because the router refers back to the bridge through the API.
    router: OnceLock<Weak<Router>>,
    manager: OnceLock<Manager>,
    questions: Questions,
    /// The `backend` events of each toolbox.
    backends: Mutex<BTreeMap<String, BackendReport>>,
    readings: Mutex<LoadedConfigs>,
    published: Mutex<PublishedStatus>,
}

/// What answers contain beside the registry, as of the last snapshot.
#[derive(Default)]
struct PublishedStatus {
    /// Why tools of a toolbox are refused, by its id.
    closed: BTreeMap<String, Arc<Lockdown>>,
    off: Arc<[OffToolbox]>,
    /// Warnings about names in the configuration that nothing has.
    warnings: Vec<String>,
}

/// The `backend` events of one generation of a toolbox.
#[derive(Clone, Default)]
struct BackendReport {
    generation: u64,
    /// The last one.
    last: Value,
    drives: Backends,
}

impl Bridge {
    pub(super) fn start(parts: Parts) -> Result<Arc<Self>, ServiceError> {
        let config = parts.configuration.applied().clone();
        let (configuration, end) = (parts.configuration.clone(), parts.end.clone());
        parts
            .tracker
            .spawn(async move { end.run_until_cancelled(configuration.follow()).await });
        let bridge = Arc::new(Self {
            parts,
            begun: Instant::now(),
            router: OnceLock::new(),
            manager: OnceLock::new(),
            questions: Questions::default(),
            backends: Mutex::default(),
            readings: Mutex::new(LoadedConfigs::new(config.clone())),
            published: Mutex::default(),
        });
        // The bridge owns the manager, so the manager gets weak references to the bridge: a cycle would never be
        // freed.
        let weak = Arc::downgrade(&bridge);
        let publish = {
            let weak = weak.clone();
            Arc::new(move |live: Arc<Live>| {
                if let Some(bridge) = weak.upgrade() {
                    bridge.publish(&live);
                }
            })
        };
        let newest = {
            let weak = weak.clone();
            move || Some(weak.upgrade()?.readings.lock().newest())
        };
        let settings = manager_settings(&config, newest).map_err(ServiceError::Toolboxes)?;
        let services = Arc::new(Services(weak, tokio::runtime::Handle::current()));
        let manager = Manager::new(settings, services.clone(), services, publish)
            .map_err(|error| ServiceError::Toolboxes(error.to_string()))?;
        if bridge.manager.set(manager).is_err() {
            tracing::error!("the bridge was started twice");
        }
        Ok(bridge)
    }

    pub(super) fn connect_router(&self, router: &Arc<Router>) {
        if self.router.set(Arc::downgrade(router)).is_err() {
            tracing::error!("the router was connected twice");
        }
    }

    /// Loads, replaces and removes toolboxes according to the plugin folders.
    pub(super) async fn load(&self) -> ReloadOutcome {
        let Some(manager) = self.manager.get() else {
            return ReloadOutcome::default();
        };
        self.parts.configuration.until_read().await;
        let newest = self.parts.configuration.newest();
        self.apply_policy(&newest);
        let reading = self.readings.lock().add(newest);
        let before = renamed(&self.parts.registry.snapshot());
        let report = manager.reload().await;
        let mut renamed = renamed(&self.parts.registry.snapshot());
        renamed.retain(|tool| !before.contains(tool));
        let live = manager.live();
        let used = live.toolboxes.iter().map(|toolbox| toolbox.reading).collect();
        self.readings.lock().forget_before(reading, &used);
        ReloadOutcome {
            added: report.added,
            removed: report.removed,
            replaced: report.replaced,
            unchanged: report.unchanged,
            failed: report.broken.iter().map(failed_file).collect(),
            renamed,
            off: self.off().to_vec(),
            closed: self.closed_text(),
            warnings: self.warnings(),
        }
    }

    /// Brings the rules of the newest files into force, before any toolbox is loaded with them. Files that cannot be read change none.
    fn apply_policy(&self, newest: &Config) {
        if newest.closed().is_none() && self.parts.policy.replace(&newest.service.policy) {
            tracing::info!(
                rules = newest.service.policy.len(),
                "the rules of service.policy changed"
            );
        }
    }

    /// Why tools are refused: the newest configuration that was loaded, or a toolbox that still has an older one.
    fn closed_text(&self) -> Option<String> {
        let newest = self.readings.lock().newest.closed();
        let older = || {
            self.published
                .lock()
                .closed
                .values()
                .next()
                .map(|closed| closed.text())
        };
        newest.map(|closed| closed.text()).or_else(older)
    }

    pub(super) async fn shut_down(&self, patience: Duration) {
        if let Some(manager) = self.manager.get()
            && !manager.shutdown(patience).await
        {
            tracing::warn!("some toolboxes did not close in time");
        }
    }

    /// Publishes the live toolboxes to the engine and then to the registry, so that a tool that can be found can be called.
    fn publish(&self, live: &Live) {
        let before = self.parts.registry.snapshot();
        let loaded = live.toolboxes.iter().map(|toolbox| &*toolbox.id);
        let starting = live.starting.iter().map(String::as_str);
        self.parts.engine.set_installed(&loaded.chain(starting).collect());
        let taken = self.yielded_names(live);
        let ids = known_ids(live, &self.readings.lock().newest().0);
        let mut entries = Vec::with_capacity(live.toolboxes.len());
        let mut closed = BTreeMap::new();
        for toolbox in &live.toolboxes {
            let config = self.readings.lock().get(toolbox.reading);
            if let Some(why) = config.closed() {
                closed.insert(toolbox.id.to_string(), Arc::new(why));
            }
            // The toolbox was loaded with this section, so the section is valid.
            let Ok(section) = config.toolbox(&toolbox.id) else {
                tracing::error!(
                    toolbox = &*toolbox.id,
                    "bug in the service: its configuration was lost"
                );
                continue;
            };
            if toolbox.state == State::Ready {
                let limits = engine_limits(&section.limits.calls, &config, toolbox.toolbox.halt_limit());
                let engine = &self.parts.engine;
                engine.set_step_tools(&toolbox.id, step_tools(toolbox, &section));
                engine.attach(&toolbox.id, toolbox.generation, toolbox.toolbox.clone(), limits);
            }
            let earlier = before.toolbox(&toolbox.id);
            let permits = |tool: &str| section.tools.permits(tool);
            let yields = |tool: &str| taken.owner(toolbox, &section, tool).is_some();
            entries.push(entry(toolbox, earlier, permits, yields));
        }
        let newest = self.readings.lock().newest.clone();
        *self.published.lock() = PublishedStatus {
            closed,
            off: live.off.iter().map(|off| admission::off(off, &newest)).collect(),
            warnings: warnings::unused(live, &newest),
        };
        let snapshot = Snapshot::with_known(entries, ids);
        let named_before = renamed(&before);
        for tool in renamed(&snapshot)
            .iter()
            .filter(|tool| !named_before.contains(tool))
        {
            tracing::warn!("{tool}");
        }
        self.parts.registry.swap(snapshot);
        if let Some(router) = self.router.get().and_then(Weak::upgrade) {
            router.listen_to(topics(live));
        }
    }

    /// The tools that yielding toolboxes leave to others.
    fn yielded_names(&self, live: &Live) -> TakenNames {
        TakenNames::new(live, |toolbox, tool| {
            let config = self.readings.lock().get(toolbox.reading);
            config
                .toolbox(&toolbox.id)
                .is_ok_and(|section| section.tools.permits(tool))
        })
    }

    /// The tools that one toolbox leaves to others, as text.
    fn yielded(&self, toolbox: &LiveToolbox, taken: &TakenNames) -> Vec<String> {
        let config = self.readings.lock().get(toolbox.reading);
        let Ok(section) = config.toolbox(&toolbox.id) else {
            return Vec::new();
        };
        let names = toolbox
            .tools
            .tools
            .iter()
            .map(|tool| tool.definition.name.as_str());
        let yielded = names.filter_map(|name| {
            let owner = taken.owner(toolbox, &section, name)?;
            Some(format!(
                "`{name}` is hidden because `{owner}` offers it, too; list it in `tools.allow` to show both"
            ))
        });
        yielded.collect()
    }

    /// Publishes an event of a toolbox.
    pub(super) fn event(&self, toolbox_id: &str, event: Event) {
        let data = EventMessage {
            toolbox_id: toolbox_id.to_owned(),
            kind: event.kind,
            severity: event.severity,
            data: event.data,
            ts: now(),
        };
        let Ok(Value::Object(data)) = serde_json::to_value(&data) else {
            return;
        };
        let mut message = Message::new("ovos.tools.event", data);
        message
            .context
            .insert("source".to_owned(), Value::from("ovos_tools"));
        let session = serde_json::json!({ "session_id": bus::DEFAULT_SESSION_ID });
        message.context.insert("session".to_owned(), session);
        self.parts.outbox.notify(message.to_text());
    }

    fn respond(&self, question: &Question, answer: &Result<Value, Failure>) {
        if let Some(manager) = self.manager.get() {
            manager.deliver_response(&question.origin, question.request, answer);
        }
    }
}

/// The interface of the bridge for the plugin manager and its toolboxes.
struct Services(Weak<Bridge>, tokio::runtime::Handle);

impl Drain for Services {
    fn drain(&self, toolbox_id: &str, generation: u64, limit: Duration) -> BoxFuture<'static, ()> {
        let bridge = self.0.upgrade();
        let toolbox_id = toolbox_id.to_owned();
        Box::pin(async move {
            let Some(bridge) = bridge else { return };
            bridge.parts.engine.drain(&toolbox_id, generation, limit).await;
        })
    }

    fn closed(&self, toolbox_id: &str, generation: u64) {
        if let Some(bridge) = self.0.upgrade() {
            bridge.parts.engine.detach(toolbox_id, generation);
            let mut backends = bridge.backends.lock();
            if backends
                .get(toolbox_id)
                .is_some_and(|report| report.generation == generation)
            {
                backends.remove(toolbox_id);
            }
        }
    }
}

impl HostServices for Services {
    fn event(&self, origin: &Origin, event: Event) {
        let Some(bridge) = self.0.upgrade() else { return };
        match event.kind.as_str() {
            "backend" => {
                let mut backends = bridge.backends.lock();
                let report = backends.entry(origin.toolbox_id.to_string()).or_default();
                // An event of a copy that is being drained does not apply to its successor.
                if report.generation <= origin.generation {
                    if report.generation < origin.generation {
                        *report = BackendReport::default();
                    }
                    report.generation = origin.generation;
                    report.last = event.data.clone().unwrap_or_default();
                    report.drives.hear(&report.last);
                }
            }
            "latched" => bridge.latched(origin, &event, &self.1),
            _ => {}
        }
        bridge.event(&origin.toolbox_id, event);
    }

    fn request(&self, origin: &Origin, request: Request) {
        let Some(bridge) = self.0.upgrade() else { return };
        let Request {
            id,
            topic,
            data,
            timeout,
        } = request;
        let data = match data {
            Value::Object(data) => data,
            _ => Object::new(),
        };
        let question = Question {
            origin: origin.clone(),
            request: id,
        };
        let (message, session) = bridge.questions.ask(question, &topic, data);
        bridge.parts.outbox.notify(message.to_text());
        let (tracker, end) = (bridge.parts.tracker.clone(), bridge.parts.end.clone());
        tracker.spawn_on(
            async move {
                tokio::select! {
                    () = tokio::time::sleep(timeout) => {}
                    () = end.cancelled() => {}
                }
                if let Some(question) = bridge.questions.give_up(&session) {
                    let late = format!("no answer to `{topic}` came within {} ms", timeout.as_millis());
                    bridge.respond(&question, &Err(Failure::new(FailureKind::TimeoutError, late)));
                }
            },
            &self.1,
        );
    }
}

impl Bridge {
    /// Latches a toolbox that has stopped by itself (a button, a fall).
    fn latched(self: &Arc<Self>, origin: &Origin, event: &Event, runtime: &tokio::runtime::Handle) {
        let reason = event.data.as_ref().and_then(|data| data.get("reason")?.as_str());
        let reason = format!("the toolbox itself: {}", reason.unwrap_or("no reason given"));
        let stopped = self.parts.engine.stop_itself(&origin.toolbox_id, &reason);
        let bridge = self.clone();
        let remembered = async move {
            // No client asked for this stop, so a failure to remember it goes to the log only.
            _ = futures_util::join!(stopped, bridge.latches_changed());
        };
        // This runs on a thread of the toolbox, outside the runtime.
        self.parts.tracker.spawn_on(remembered, runtime);
    }
}

impl Deliveries for Bridge {
    fn deliver(&self, message: &Message) {
        if let Some(question) = self.questions.answered(message) {
            self.respond(&question, &Ok(Value::Object(message.data.clone())));
        }
        if let (Some(manager), Ok(data)) = (self.manager.get(), serde_json::to_string(&message.data)) {
            manager.deliver_message(&message.kind, &data);
        }
    }

    fn configuration_updated(&self) {
        self.parts.configuration.files_changed();
    }

    fn configuration_patched(&self, head: &Message, data: &Object) {
        self.parts.configuration.patch(head, data);
    }

    fn configuration_patches_cleared(&self) {
        self.parts.configuration.clear_patches();
    }
}

impl Bridge {
    /// The status of the live toolboxes.
    fn toolboxes(&self, live: &Live) -> Vec<ToolboxStatus> {
        let backends = self.backends.lock().clone();
        let registry = self.parts.registry.snapshot();
        let report_of = |toolbox: &LiveToolbox| {
            let report = backends.get(&*toolbox.id);
            report.filter(|report| report.generation == toolbox.generation)
        };
        let taken = self.yielded_names(live);
        let newest = self.parts.configuration.newest();
        let unstated = |toolbox: &LiveToolbox| {
            let tools = toolbox.tools.tools.iter().map(|tool| &tool.definition);
            let unstated = tools.filter(|tool| effects::unstated(&newest, &toolbox.id, tool).is_some());
            unstated.map(|tool| tool.name.clone()).collect()
        };
        let unconfined = |why| format!("runs unconfined: {why}");
        let status = |toolbox: &Arc<LiveToolbox>| {
            let (state, reason) = match &toolbox.state {
                State::Ready => ("ready", toolbox.unconfined.map(unconfined)),
                State::Reloading => ("reloading", None),
                State::Failed(reason) => ("failed", Some(reason.clone())),
            };
            let report = report_of(toolbox);
            ToolboxStatus {
                toolbox_id: toolbox.id.to_string(),
                state: state.to_owned(),
                isolation: "process".to_owned(),
                pid: Some(toolbox.toolbox.pid()),
                host: toolbox.manifest.host.clone(),
                restarts: toolbox.restarts,
                last_death: toolbox.last_death.clone(),
                generation: toolbox.generation,
                version: toolbox.manifest.version.clone(),
                description: toolbox.manifest.description.clone(),
                guide: Some(&toolbox.manifest.guide)
                    .filter(|guide| !guide.is_empty())
                    .cloned(),
                path: toolbox.path.display().to_string(),
                sha256: toolbox.sha256.clone(),
                tools: registry.toolbox(&toolbox.id).map_or(0, |entry| entry.tools.len()),
                dropped_tools: toolbox.tools.dropped.iter().map(ToString::to_string).collect(),
                yielded_tools: self.yielded(toolbox, &taken),
                renamed_tools: renamed_of(&registry, &toolbox.id).collect(),
                unstated_effects: unstated(toolbox),
                reason,
                backend: report.map(|report| report.last.clone()),
                simulated: report
                    .map_or_else(Backends::default, |report| report.drives.clone())
                    .of_every_call(),
                ..ToolboxStatus::default()
            }
        };
        live.toolboxes.iter().map(status).collect()
    }

    /// What the configuration says and nothing comes of it.
    fn warnings(&self) -> Vec<String> {
        let mut found = self.parts.configuration.problems();
        found.extend(self.parts.upgraded.iter().cloned());
        found.extend(self.published.lock().warnings.iter().cloned());
        found
    }

    /// The configuration keys that are not in force yet.
    fn pending_config(&self, live: &Live) -> Vec<String> {
        let newest = self.parts.configuration.newest();
        let readings = self.readings.lock();
        let loaded = live
            .toolboxes
            .iter()
            .filter(|toolbox| {
                readings
                    .get(toolbox.reading)
                    .changes_toolbox(&newest, &toolbox.id)
            })
            .map(|toolbox| toolbox.id.to_string());
        let others = readings.newest.changes(&newest);
        let not_loaded = others.toolboxes.into_iter().filter(|id| live.get(id).is_none());
        let mut pending = self.parts.configuration.pending();
        if readings.newest.service.policy == newest.service.policy {
            pending.retain(|key| !key.ends_with(POLICY));
        }
        pending.extend(loaded.chain(not_loaded).chain(others.programs));
        pending
    }
}

impl Toolboxes for Bridge {
    fn reload(&self) -> BoxFuture<'_, ReloadOutcome> {
        self.parts.configuration.files_changed();
        Box::pin(self.load())
    }

    fn status(&self) -> StatusResponse {
        let live = self.manager.get().map(Manager::live).unwrap_or_default();
        let router = self.router.get().and_then(Weak::upgrade);
        let turned = router.map_or((0, 0), |router| (router.turned_away(), router.dropped()));
        let url = &self.parts.configuration.applied().bus.url;
        StatusResponse {
            service: ServiceStatus {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
                uptime_ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
                ready: false,
            },
            bus: bus_status(self.parts.outbox.client(), url, turned),
            toolboxes: self.toolboxes(&live),
            failed: live.failed.iter().map(failed_file).collect(),
            pythons: live.pythons.iter().map(python).collect(),
            pending_config: self.pending_config(&live),
            off: self.off().to_vec(),
            closed: self.closed_text(),
            warnings: self.warnings(),
            facts: self.parts.record.status(),
            doors: self.parts.started_doors.status(),
            ..StatusResponse::default()
        }
    }

    fn backends(&self, toolbox_id: &str, generation: u64) -> Backends {
        let backends = self.backends.lock();
        let report = backends
            .get(toolbox_id)
            .filter(|report| report.generation == generation);
        report.map(|report| report.drives.clone()).unwrap_or_default()
    }

    fn closed(&self, toolbox_id: &str, effect: Effect) -> Option<String> {
        let closed = self.published.lock().closed.get(toolbox_id).cloned()?;
        closed.refuses(effect).then(|| closed.text())
    }

    fn note(&self, tool: &Tool) -> Option<String> {
        let definition = &tool.compiled.definition;
        let config = self.parts.configuration.newest();
        let key = effects::unstated(&config, &tool.toolbox_id, definition)?;
        Some(effects::note(&key, &definition.name))
    }

    fn off(&self) -> Arc<[OffToolbox]> {
        self.published.lock().off.clone()
    }

    fn latches_changed(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(self.parts.state.keep(&self.parts.engine, ANSWER))
    }
}

/// The end of the key of the rules of who may call what. A reload brings them into force, a restart the other keys of `service`.
const POLICY: &str = ".service.policy";

/// Seconds since 1970.
fn now() -> f64 {
    std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .map_or(0.0, |since| since.as_secs_f64())
}
