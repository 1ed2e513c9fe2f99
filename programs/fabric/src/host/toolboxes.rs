//! The toolboxes of this host: the same manager and engine as in the service, without a bus.
//!
//! A machine is brought to rest by the engine here, whoever asked it to move: its latch, its epoch and its record of what moves are
//! those of the service, on the disk of this machine. Read [`Toolboxes`].

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{Effect, Event, Failure, FailureKind, Manifest, ToolDefinition};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::action::RemoteActions;
use config::{
    Activation, Backends, Caller, Config, Decide, Principal, Question, Rule, Section, built_in, decide,
};
use engine::{Engine, Limits, StepTool, StepTools, StopResult, StopTarget};
use host::state::{ANSWER, StateFolder, StateWriter};
use host::{
    Drain, Greeter, HostServices, Live, LiveToolbox, Manager, NotAdmitted, Origin, Request, Settings, State,
    ToolboxSettings,
};

/// The service's binary, which hosts each toolbox in a process of its own.
const HOSTING: &str = "ovos-tools";

/// The newest events of a toolbox that are kept for mounts that have not heard them yet.
const KEPT_EVENTS: usize = 256;

/// How long the start waits until the stops that the last run left behind are written.
const FIRST_RECORD: Duration = Duration::from_secs(2);

/// The toolboxes of this host.
pub(super) struct Toolboxes {
    pub(super) engine: Arc<Engine>,
    config: Arc<Config>,
    /// The rules that follow those of `service.policy`.
    built_in: Vec<Rule>,
    pub(super) content: PathBuf,
    state: Arc<StateWriter>,
    manager: OnceLock<Manager>,
    rooms: Mutex<BTreeMap<String, Room>>,
    runtime: Handle,
}

/// What this host knows of one toolbox.
#[derive(Default)]
struct Room {
    description: String,
    generation: u64,
    /// `ready`, or why it does not serve.
    state: String,
    tools: Vec<ToolDefinition>,
    /// Changes with the tools.
    version: u64,
    /// The copy that serves, or served last.
    copy: Option<Arc<RemoteActions>>,
    is_ready: bool,
    /// The newest events, each with its number.
    events: VecDeque<(u64, Event)>,
    last: u64,
    /// The last report of each unit of its backend, and the copy that made them.
    backends: BTreeMap<String, Event>,
    reporting: u64,
}

/// What a mount is told of a toolbox.
pub(super) struct RoomView {
    pub(super) description: String,
    pub(super) state: String,
    pub(super) tools: usize,
    pub(super) version: u64,
    pub(super) last: u64,
}

/// How a host is opened.
pub(super) struct Opening {
    pub(super) config: Arc<Config>,
    /// Whether toolboxes are loaded that drive a simulator and were not asked for.
    pub(super) simulators: bool,
    pub(super) runtime: Handle,
}

impl Toolboxes {
    /// Reads what the last run left behind, and loads the toolboxes.
    ///
    /// # Errors
    /// The manager cannot be started; the text says why.
    pub(super) async fn open(opening: Opening) -> Result<Arc<Self>, String> {
        let Opening {
            config,
            simulators,
            runtime,
        } = opening;
        // Beside the state of a service on this machine, not in its place.
        let folder = config.service.state_dir.join("fabric");
        let reading = folder.clone();
        let read = tokio::task::spawn_blocking(move || StateFolder::read(&reading)).await;
        let (store, latched) = read.map_err(|error| error.to_string())?;
        let engine = Arc::new(Engine::new(config.service.max_calls, latched));
        let (state, writing) = StateWriter::new();
        engine.watch_motion(state.clone());
        writing
            .start(store)
            .map_err(|error| format!("start the thread of the state folder: {error}"))?;
        let this = Arc::new(Self {
            engine: engine.clone(),
            content: folder.join("content"),
            config,
            // Who may resume is a matter of the role.
            built_in: built_in(true),
            state: state.clone(),
            manager: OnceLock::new(),
            rooms: Mutex::default(),
            runtime,
        });
        let weak = Arc::downgrade(&this);
        let publish = {
            let weak = weak.clone();
            Arc::new(move |live: Arc<Live>| {
                if let Some(toolboxes) = weak.upgrade() {
                    toolboxes.publish(&live);
                }
            })
        };
        let services = Arc::new(Services(weak));
        let settings = this.settings(simulators)?;
        let manager = Manager::new(settings, services.clone(), services, publish);
        let manager = manager.map_err(|error| error.to_string())?;
        let manager = this.manager.get_or_init(|| manager);
        // What moved when the last run ended is latched by now, and has to be on record before something moves again.
        if let Err(why) = state.keep(&engine, FIRST_RECORD).await {
            tracing::error!(why, "the stops that are in force cannot be written");
        }
        engine::MotionWatch::changed(&*state, &[]);
        engine.set_starting(true);
        let report = manager.reload().await;
        engine.set_starting(false);
        for broken in report.broken {
            tracing::error!(path = %broken.path.display(), reason = broken.reason, "a toolbox is not loaded");
        }
        Ok(this)
    }

    fn settings(&self, simulators: bool) -> Result<Settings, String> {
        let (config, service) = (self.config.clone(), &self.config.service);
        let own = std::env::current_exe().map_err(|error| format!("find this program: {error}"))?;
        let hosting = own.with_file_name(HOSTING);
        if !hosting.is_file() {
            return Err(format!(
                "{} is missing: it hosts the toolboxes, and is installed beside this program",
                hosting.display()
            ));
        }
        let max_result_bytes = service.max_result_bytes;
        let configured = {
            let config = config.clone();
            move |id: &str| {
                let section = config.toolbox(id).map_err(|errors| errors.to_string())?;
                let limits = &section.limits;
                let times = (limits.open, limits.close);
                let toolbox = section.toolbox.clone();
                Ok(ToolboxSettings::new(
                    toolbox,
                    limits.memory_mb,
                    max_result_bytes,
                    times,
                ))
            }
        };
        let programs = {
            let config = config.clone();
            move || {
                let on = config.programs.iter().filter(|program| program.enabled);
                on.cloned().collect()
            }
        };
        let admit = move |manifest: &Manifest, path: &Path| admit(&config, simulators, manifest, path);
        Ok(Settings {
            stage_dirs: service.stage_dirs.clone(),
            content_dir: Some(self.content.clone()),
            max_failures: service.max_failures,
            drain: service.drain,
            config: Arc::new(configured),
            admit: Arc::new(admit),
            programs: Arc::new(programs),
            ..Settings::new(service.plugins_dir.clone(), Greeter::with_program(hosting))
        })
    }

    /// Takes over a snapshot of the manager.
    fn publish(&self, live: &Live) {
        let loaded = live.toolboxes.iter().map(|toolbox| &*toolbox.id);
        let starting = live.starting.iter().map(String::as_str);
        self.engine.set_installed(&loaded.chain(starting).collect());
        let mut rooms = self.rooms.lock();
        // One that is being opened has said something already, perhaps.
        rooms.retain(|id, _| live.get(id).is_some() || live.starting.contains(id));
        for toolbox in &live.toolboxes {
            let Ok(section) = self.config.toolbox(&toolbox.id) else {
                continue;
            };
            let room = rooms.entry(toolbox.id.to_string()).or_default();
            let (state, is_ready) = match &toolbox.state {
                State::Ready => ("ready".to_owned(), true),
                State::Reloading => ("it is being started again".to_owned(), false),
                State::Failed(reason) => (reason.clone(), false),
            };
            let permitted = toolbox.tools.tools.iter().map(|tool| &tool.definition);
            let permitted = permitted.filter(|tool| section.tools.permits(&tool.name));
            let tools: Vec<ToolDefinition> = permitted.cloned().collect();
            if room.tools != tools || room.version == 0 {
                room.version += 1;
                room.tools = tools;
            }
            if room.generation != toolbox.generation || room.copy.is_none() {
                room.copy = Some(Arc::new(RemoteActions::new(toolbox.toolbox.clone())));
            }
            room.description.clone_from(&toolbox.manifest.description);
            room.generation = toolbox.generation;
            room.state = state;
            room.is_ready = is_ready;
            if let Some(copy) = room.copy.clone().filter(|_| is_ready) {
                let calls = &section.limits.calls;
                self.engine
                    .set_step_tools(&toolbox.id, step_tools(toolbox, &section));
                let limits = Limits {
                    max_waiting: calls.max_waiting,
                    max_wait: calls.max_wait,
                    plan: self.config.service.plan,
                    default_timeout: calls.default_timeout,
                    grace: calls.grace,
                    settle: calls.settle,
                    safe_limit: calls.safe_limit,
                    halt: toolbox.toolbox.halt_limit(),
                };
                self.engine.attach(&toolbox.id, toolbox.generation, copy, limits);
            }
        }
    }

    /// Why tools of this effect are refused: the configuration of this host cannot be read.
    pub(super) fn closed(&self, effect: Effect) -> Option<String> {
        let closed = self.config.closed().filter(|closed| closed.refuses(effect))?;
        Some(format!("{}, and start the host again", closed.text()))
    }

    /// Why `service.policy` of this machine refuses `peer` a tool, if it does. `takes` is what the call takes. A stop is never refused.
    /// Nobody here confirms anything, so what has to be confirmed is refused.
    pub(super) fn refusal(
        &self,
        peer: &str,
        of: (&str, &str),
        effect: Effect,
        takes: &[String],
    ) -> Option<String> {
        let (toolbox_id, tool) = of;
        let principal = Principal {
            kind: Caller::Machine,
            name: peer.to_owned(),
        };
        let question = Question {
            principal: &principal,
            toolbox_id,
            tool,
            effect,
            simulated: self.simulates(toolbox_id, takes),
        };
        let decision = decide(&self.config.service.policy, &self.built_in, &question);
        let why = match decision.decide {
            Decide::Allow => return None,
            Decide::Deny => "",
            Decide::Confirm => {
                " asks for a confirmation, and nobody can confirm on a host: put a rule with \"who\": \"machine\" and \"decide\": \
                 \"allow\" before it"
            }
        };
        let reason = decision
            .reason
            .map_or_else(String::new, |reason| format!(": {reason}"));
        Some(format!(
            "{principal} may not call `{tool}` of toolbox `{toolbox_id}` there ({}{why}){reason}",
            decision.rule
        ))
    }

    /// Whether everything that a call takes has said that it is simulated.
    fn simulates(&self, id: &str, takes: &[String]) -> bool {
        let rooms = self.rooms.lock();
        let Some(room) = rooms.get(id) else { return false };
        if room.reporting != room.generation {
            return false;
        }
        let mut backends = Backends::default();
        for data in room.backends.values().filter_map(|event| event.data.as_ref()) {
            backends.hear(data);
        }
        backends
            .of_every_call()
            .unwrap_or_else(|| backends.simulates(takes))
    }

    /// The ids of all toolboxes.
    pub(super) fn ids(&self) -> Vec<String> {
        let rooms = self.rooms.lock();
        let loaded = rooms.iter().filter(|(_, room)| room.copy.is_some());
        loaded.map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn view(&self, id: &str) -> Option<RoomView> {
        let rooms = self.rooms.lock();
        let room = rooms.get(id).filter(|room| room.copy.is_some())?;
        Some(RoomView {
            description: room.description.clone(),
            state: room.state.clone(),
            tools: room.tools.len(),
            version: room.version,
            last: room.last,
        })
    }

    pub(super) fn tools(&self, id: &str) -> Option<Vec<ToolDefinition>> {
        Some(self.rooms.lock().get(id)?.tools.clone())
    }

    /// A tool that this host offers.
    pub(super) fn tool(&self, id: &str, tool: &str) -> Option<ToolDefinition> {
        let rooms = self.rooms.lock();
        let tools = &rooms.get(id)?.tools;
        tools.iter().find(|known| known.name == tool).cloned()
    }

    /// The toolbox, and the number of its copy.
    ///
    /// # Errors
    /// It is not there, or does not serve.
    pub(super) fn serving(&self, id: &str) -> Result<(Arc<RemoteActions>, u64), Failure> {
        let rooms = self.rooms.lock();
        let room = rooms.get(id).ok_or_else(|| unknown(id, rooms.keys()))?;
        match &room.copy {
            Some(copy) if room.is_ready => Ok((copy.clone(), room.generation)),
            _ => Err(Failure::new(
                FailureKind::ToolboxUnavailable,
                format!("toolbox `{id}`: {}", room.state),
            )),
        }
    }

    /// The events after the one with this number, oldest first; without a number what still holds of those before.
    pub(super) fn events(&self, id: &str, after: Option<u64>) -> Vec<(u64, Event)> {
        let rooms = self.rooms.lock();
        let Some(room) = rooms.get(id) else {
            return Vec::new();
        };
        match after {
            None => room
                .backends
                .values()
                .map(|event| (room.last, event.clone()))
                .collect(),
            Some(after) => {
                let newer = room.events.iter().filter(|(number, _)| *number > after);
                newer.cloned().collect()
            }
        }
    }

    /// Stops toolboxes in an emergency, as the engine does: they are latched and their halts sent when this returns. The result
    /// arrives when the toolboxes have confirmed.
    pub(super) fn stop(&self, target: &StopTarget, reason: &str) -> BoxFuture<'static, Vec<StopResult>> {
        let stopped = self.engine.stop(target, reason);
        self.keep();
        stopped
    }

    /// Writes which toolboxes are latched.
    pub(super) fn keep(&self) {
        let kept = self.state.keep(&self.engine, ANSWER);
        self.runtime.spawn(async move {
            if let Err(why) = kept.await {
                tracing::error!(
                    why,
                    "a stop is in force, but not on the disk: a restart would lift it"
                );
            }
        });
    }

    /// Ends everything.
    pub(super) async fn shut_down(&self, patience: Duration) {
        self.engine.shut_down();
        if let Some(manager) = self.manager.get()
            && !manager.shutdown(patience).await
        {
            tracing::warn!("some toolboxes did not close in time");
        }
        if let Err(why) = self.state.flush(Duration::from_secs(1)).await {
            tracing::error!(why, "the state is not on the disk");
        }
    }
}

/// All tools of a toolbox, those that the configuration forbids included: a plan may name them as steps.
fn step_tools(toolbox: &LiveToolbox, section: &Section) -> StepTools {
    let key = |key| format!("PHAL.{}.{}.{key}", config::OURS, toolbox.id);
    let tools = toolbox.tools.tools.iter().map(|tool| {
        let name = &tool.definition.name;
        let forbidden_by = section.tools.forbidden_by(name).map(key);
        let effect = tool.definition.effect;
        (name.clone(), StepTool { effect, forbidden_by })
    });
    tools.collect()
}

fn unknown<'a>(id: &str, known: impl Iterator<Item = &'a String>) -> Failure {
    let known: Vec<&str> = known.map(String::as_str).collect();
    Failure::new(
        FailureKind::ToolboxUnavailable,
        format!("this host has no toolbox `{id}`; it has: {}", known.join(", ")),
    )
}

/// As in the service: a simulator of the packaged folders has to be asked for.
fn admit(config: &Config, simulators: bool, manifest: &Manifest, path: &Path) -> Result<(), NotAdmitted> {
    let unknown = config.closed().is_some_and(|closed| closed.backends_unknown());
    if unknown && (manifest.simulated_by_default || manifest.exclusive) {
        return Err(NotAdmitted::BackendUnknown);
    }
    if manifest.needs_section && config.named(&manifest.id, path) == Activation::No {
        return Err(NotAdmitted::NoSection);
    }
    let asked = simulators || config.activation(&manifest.id, path) != Activation::No;
    if manifest.simulated_by_default && !asked {
        return Err(NotAdmitted::NotAskedFor);
    }
    Ok(())
}

/// What the manager and the toolboxes use of this host.
struct Services(Weak<Toolboxes>);

impl Drain for Services {
    fn drain(&self, toolbox_id: &str, generation: u64, limit: Duration) -> BoxFuture<'static, ()> {
        let toolboxes = self.0.upgrade();
        let toolbox_id = toolbox_id.to_owned();
        Box::pin(async move {
            let Some(toolboxes) = toolboxes else { return };
            toolboxes.engine.drain(&toolbox_id, generation, limit).await;
        })
    }

    fn closed(&self, toolbox_id: &str, generation: u64) {
        if let Some(toolboxes) = self.0.upgrade() {
            toolboxes.engine.detach(toolbox_id, generation);
        }
    }
}

impl HostServices for Services {
    fn event(&self, origin: &Origin, event: Event) {
        let Some(toolboxes) = self.0.upgrade() else { return };
        if event.kind == "latched" {
            let reason = event.data.as_ref().and_then(|data| data.get("reason")?.as_str());
            let reason = format!("the toolbox itself: {}", reason.unwrap_or("no reason given"));
            let stopped = toolboxes.engine.stop_itself(&origin.toolbox_id, &reason);
            toolboxes.runtime.spawn(stopped);
            toolboxes.keep();
        }
        let mut rooms = toolboxes.rooms.lock();
        let room = rooms.entry(origin.toolbox_id.to_string()).or_default();
        if event.kind == "backend" && room.reporting <= origin.generation {
            if room.reporting < origin.generation {
                room.backends.clear();
                room.reporting = origin.generation;
            }
            let unit = event.data.as_ref().and_then(|data| data.get("unit")?.as_str());
            room.backends
                .insert(unit.unwrap_or_default().to_owned(), event.clone());
        }
        room.last += 1;
        let last = room.last;
        if room.events.len() == KEPT_EVENTS {
            room.events.pop_front();
        }
        room.events.push_back((last, event));
    }

    fn request(&self, origin: &Origin, request: Request) {
        let Some(toolboxes) = self.0.upgrade() else { return };
        let (origin, id) = (origin.clone(), request.id);
        let text = format!("`{}`: this toolbox is on a host without a bus", request.topic);
        toolboxes.runtime.clone().spawn(async move {
            let answer = Err(Failure::new(FailureKind::ToolboxUnavailable, text));
            if let Some(manager) = toolboxes.manager.get() {
                manager.deliver_response(&origin, id, &answer);
            }
        });
    }
}
