//! The service: connects the bus, the API, the engine and the toolboxes, and shuts them down in order.
//!
//! Owns every task (one tracker, one cancellation token) and the order of start and shutdown. It decides nothing
//! about a call. Read [`run`].

mod admission;
mod bus_loss;
mod bus_outbox;
mod bus_status;
mod call_lines;
mod configuration;
mod control;
mod deliveries;
mod doors;
mod effects;
mod error;
mod fact_files;
mod fact_record;
mod fact_stream;
mod last_good;
mod listing;
mod loaded_configs;
mod own_bus;
mod questions;
mod requests;
mod router;
#[cfg(test)]
mod router_tests;
mod settings;
mod started_doors;
mod stop_events;
mod stop_thread;
mod toolboxes;
mod upgrade;
mod warnings;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::api::{Api, Settings, StatusResponse};
use crate::policy::Policy;
use crate::registry::Registry;
use bus::{BusClient, ClientConfig};
use config::{Config, OnBusLoss, Overrides};
use engine::{Engine, MotionWatch, StopTarget};
use host::descriptors;
use host::state::{StateFolder, StateWriter};
use logs::Logs;

pub use error::ServiceError;
pub use own_bus::server_config;

use bus_outbox::BusOutbox;
use configuration::Configuration;
use control::Control;
use fact_record::FactRecord;
use own_bus::OwnBus;
use router::Router;
use started_doors::StartedDoors;
use stop_thread::StopThread;
use toolboxes::Bridge;

/// Time limit of the whole shutdown.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// The part of [`SHUTDOWN_PATIENCE`] in which calls end: the machine comes to rest (settle_ms), and its toolbox reports that. If
/// the longest settle_ms plus [`SAYING_PATIENCE`] is longer, that sum applies instead, and the whole limit grows by the
/// difference.
const CALLS_PATIENCE: Duration = Duration::from_millis(3500);

/// How long a toolbox has to report that its machine is at rest.
const SAYING_PATIENCE: Duration = Duration::from_millis(500);

/// The part of [`SHUTDOWN_PATIENCE`] reserved for writing answers after the toolboxes have closed.
const WRITING_PATIENCE: Duration = Duration::from_millis(500);

/// How long the start waits for toolboxes before the service connects to the bus; slower ones join later.
const QUICK: Duration = Duration::from_millis(250);

/// How long the start waits until the latches that follow from the state of the last service are written.
const RECORD_PATIENCE: Duration = Duration::from_secs(1);

/// The inputs of [`run`].
pub struct Start {
    /// The configuration in force.
    pub config: Arc<Config>,
    /// Options of the command line, which override the files; needed to read the files again.
    pub overrides: Overrides,
    /// The log, whose level can change at run time. `None` in tests.
    pub logs: Option<Logs>,
    /// Cancel it to shut the service down.
    pub shutdown: CancellationToken,
}

/// A summary of the started service.
#[derive(Debug)]
pub struct StartSummary {
    /// The answer to `ovos.tools.status` at this moment.
    pub status: StatusResponse,
    /// The address of the bus it connects to.
    pub bus: Url,
    /// The address of the embedded bus, if it runs.
    pub embedded_bus: Option<String>,
    /// The time from the call of [`run`] until every toolbox was loaded.
    pub took: Duration,
}

/// Runs the service until `start.shutdown` is cancelled; SIGUSR1 is an emergency stop of everything. `started` is
/// called once, when every toolbox is loaded or has failed, unless the shutdown comes first; the bus may connect later.
///
/// # Errors
/// See [`ServiceError`]. A toolbox that cannot be loaded is reported, and is no error. A bus that is away is reported, and the
/// service keeps trying to connect.
///
/// # Cancel safety
/// Not safe: dropping it leaves toolboxes open; cancel `start.shutdown` instead.
pub async fn run(start: Start, started: impl FnOnce(&StartSummary)) -> Result<(), ServiceError> {
    let began_at = Instant::now();
    // Installed before anything is loaded: without a handler the signal would end the process.
    let emergency = signal(SignalKind::user_defined1()).map_err(ServiceError::Signal)?;
    let shutdown = start.shutdown.clone();
    let running = RunningService::start(start).await?;
    running.tracker.spawn(stop_on_signal(
        emergency,
        running.api.clone(),
        running.end.clone(),
    ));
    notify(&[sd_notify::NotifyState::Ready]);
    tokio::select! {
        () = running.api.all_loaded() => started(&running.summary(began_at.elapsed())),
        () = shutdown.cancelled() => {}
    }
    shutdown.cancelled().await;
    notify(&[sd_notify::NotifyState::Stopping]);
    running.shut_down().await;
    Ok(())
}

/// Serves SIGUSR1, an emergency stop of everything, also during the shutdown.
async fn stop_on_signal(mut emergency: Signal, api: Arc<Api>, end: CancellationToken) {
    loop {
        tokio::select! {
            _ = emergency.recv() => {
                tracing::warn!("SIGUSR1: emergency stop of everything");
                api.stop(&StopTarget::All, "SIGUSR1").await;
            }
            () = end.cancelled() => return,
        }
    }
}

/// The parts of a running service.
struct RunningService {
    config: Arc<Config>,
    engine: Arc<Engine>,
    api: Arc<Api>,
    router: Arc<Router>,
    bridge: Arc<Bridge>,
    outbox: Arc<BusOutbox>,
    own_bus: OwnBus,
    state: Arc<StateWriter>,
    record: Arc<FactRecord>,
    started_doors: Arc<StartedDoors>,
    tracker: TaskTracker,
    /// Cancelled when the calls have ended and been answered. It ends the tasks.
    end: CancellationToken,
    /// Dropped after everything that runs there.
    _stops: StopThread,
}

impl RunningService {
    async fn start(start: Start) -> Result<Self, ServiceError> {
        let Start {
            config,
            overrides,
            logs,
            shutdown: _,
        } = start;
        let (tracker, end) = (TaskTracker::new(), CancellationToken::new());
        if let Err(error) = descriptors::raise() {
            tracing::warn!(%error, "the limit of file descriptors stays as it is");
        }
        let stops = StopThread::start().map_err(ServiceError::Stops)?;
        let own_bus = OwnBus::start(&config, stops.handle()).await?;
        let state_dir = config.service.state_dir.clone();
        let read = tokio::task::spawn_blocking(move || {
            let last = fact_files::last_number(&state_dir);
            (StateFolder::read(&state_dir), last)
        });
        let ((folder, latched), last) = read.await.map_err(|error| ServiceError::State(error.into()))?;
        let engine = Arc::new(Engine::new(config.service.max_calls, latched));
        let (state, writing) = StateWriter::new();
        engine.watch_motion(state.clone());
        if let Some(logs) = &logs {
            let lines = call_lines::follow(engine.facts().clone(), logs.level());
            tracker.spawn(end.clone().run_until_cancelled_owned(lines));
        }
        // Before this service leaves files of its own in the folder.
        let good = config.clone();
        let startup = tokio::task::spawn_blocking(move || {
            last_good::keep(&good);
            upgrade::since_last(&good)
        });
        let upgraded = startup.await.map_err(|error| ServiceError::State(error.into()))?;
        let (state_dir, megabytes) = (&config.service.state_dir, config.service.facts_mb);
        let record = Arc::new(FactRecord::start(engine.facts(), state_dir, megabytes, last));
        let registry = Arc::new(Registry::default());
        let outbox = Arc::new(BusOutbox::default());
        let (rules, operator_tools) = (config.service.policy.clone(), config.service.operator_tools);
        let policy = Arc::new(Policy::new(rules, operator_tools, config.service.confirm));
        let started_doors = Arc::new(StartedDoors::find(&config, &overrides));
        let bridge = Bridge::start(toolboxes::Parts {
            policy: policy.clone(),
            started_doors: started_doors.clone(),
            upgraded,
            configuration: Arc::new(Configuration::new(config.clone(), overrides, logs)),
            engine: engine.clone(),
            registry: registry.clone(),
            outbox: outbox.clone(),
            state: state.clone(),
            record: record.clone(),
            tracker: tracker.clone(),
            end: end.clone(),
        })?;
        let events = stop_events::publish(engine.facts().follow_stops(), bridge.clone());
        tracker.spawn(end.clone().run_until_cancelled_owned(events));
        let settings = Settings {
            operator_tools,
            policy: policy.clone(),
            max_answer_bytes: config.bus.max_message_bytes,
            hidden_arguments: config.service.facts_hide.clone(),
            content_dir: config.service.content_dir(),
        };
        let api = Arc::new(Api::new(
            engine.clone(),
            registry,
            bridge.clone(),
            outbox.clone(),
            settings,
        ));
        let sweeping = api.clone();
        let sweeping = async move { sweeping.sweep_content().await };
        tracker.spawn(end.clone().run_until_cancelled_owned(sweeping));
        let socket = config.control_socket();
        let control = Control {
            api: api.clone(),
            policy,
            record: record.clone(),
        };
        if let Err(error) = control.start(&socket, &tracker, end.clone()) {
            let socket = socket.display();
            tracing::error!(%socket, %error, "no control socket: `ovos-tools approve` and `deny` cannot reach this service");
        }
        let router = Router::start(
            api.clone(),
            bridge.clone(),
            tracker.clone(),
            end.clone(),
            config.service.max_calls,
            config.service.answer_as_phal,
            stops.handle(),
        );
        bridge.connect_router(&router);
        if let Some(link) = own_bus.link() {
            // The router reaches the link through the bus client: if the link held the router, neither would ever be dropped.
            let router = Arc::downgrade(&router);
            link.overtake(move |text| router.upgrade().is_some_and(|router| router.takes_early(text)));
        }
        let running = Self {
            config,
            engine,
            api,
            router,
            bridge,
            outbox,
            own_bus,
            state,
            record,
            started_doors,
            tracker,
            end,
            _stops: stops,
        };
        // The engine holds every latch that the files name, so writing the files again loses no latch.
        writing.start(folder).map_err(ServiceError::State)?;
        running.remember_start().await;
        running.load_toolboxes().await;
        running.connect();
        running.started_doors.start();
        running.api.set_ready(true);
        Ok(running)
    }

    /// Writes the latches that follow from the state of the last service, and clears its record of what moved.
    async fn remember_start(&self) {
        // An error is logged, and answers to stops report it while it persists.
        _ = self.state.keep(&self.engine, RECORD_PATIENCE).await;
        self.state.changed(&[]);
    }

    /// Begins to load the toolboxes and waits for the quick ones. A stop of everything applies to the others too.
    async fn load_toolboxes(&self) {
        self.engine.set_starting(true);
        let (bridge, engine, api) = (self.bridge.clone(), self.engine.clone(), self.api.clone());
        let loading = self.tracker.spawn(async move {
            bridge.load().await;
            engine.set_starting(false);
            api.set_all_loaded();
        });
        // Loading goes on after this time limit.
        _ = tokio::time::timeout(QUICK, loading).await;
    }

    /// Starts the bus client and the task that detects the loss of the bus.
    fn connect(&self) {
        let config = ClientConfig {
            own: self.own_bus.link(),
            ..client_config(&self.config)
        };
        let client = BusClient::start(config, self.router.clone(), &self.tracker, self.end.clone());
        if self.config.service.on_bus_loss == OnBusLoss::Halt {
            let limit = self.config.service.on_bus_loss_after;
            let watch = bus_loss::watch(client.clone(), self.engine.clone(), limit, self.end.clone());
            self.tracker.spawn(watch);
        }
        let greeting = greet_bus(client.clone());
        self.tracker
            .spawn(self.end.clone().run_until_cancelled_owned(greeting));
        self.tracker.spawn(doors::watch(
            self.router.doors(),
            self.engine.clone(),
            self.end.clone(),
        ));
        self.outbox.connect(client);
    }

    fn summary(&self, took: Duration) -> StartSummary {
        StartSummary {
            status: self.api.status(),
            bus: self.config.bus.url.clone(),
            embedded_bus: self.own_bus.url(),
            took,
        }
    }

    /// Ends the calls, closes the toolboxes, then closes the connection; every request is answered on the way.
    async fn shut_down(self) {
        tracing::info!("shutting down");
        self.api.set_ready(false);
        let calls_patience = CALLS_PATIENCE.max(self.engine.longest_settle() + SAYING_PATIENCE);
        let deadline = tokio::time::Instant::now() + SHUTDOWN_PATIENCE - CALLS_PATIENCE + calls_patience;
        self.engine.shut_down();
        let (doors, ending) = (self.started_doors.clone(), TaskTracker::new());
        ending.spawn(async move { doors.shut_down().await });
        // The calls end and are answered before the toolboxes close: a closing toolbox loses its calls.
        if tokio::time::timeout(calls_patience, self.router.wait_until_answered())
            .await
            .is_err()
        {
            let calls = self.engine.calls_in_flight();
            tracing::warn!(calls, "some requests are still under way; closing the toolboxes");
        }
        let rest = deadline.saturating_duration_since(tokio::time::Instant::now() + WRITING_PATIENCE);
        self.bridge.shut_down(rest).await;
        if tokio::time::timeout_at(deadline, self.router.wait_until_answered())
            .await
            .is_err()
        {
            tracing::error!(
                calls = self.engine.calls_in_flight(),
                "some requests were not answered"
            );
        }
        if let Some(client) = self.outbox.client()
            && client.connection_now().is_up()
        {
            client.flush(deadline).await;
        }
        // All motion has ended. If this record is not written, the next service latches the toolboxes that moved.
        if let Err(why) = self.state.flush(WRITING_PATIENCE).await {
            tracing::error!(
                why,
                "could not save the last change of what is in emergency stop or moving"
            );
        }
        ending.close();
        if tokio::time::timeout_at(deadline, ending.wait()).await.is_err() {
            tracing::warn!("some doors did not end in time");
        }
        self.record.flush(RECORD_PATIENCE.min(WRITING_PATIENCE)).await;
        self.end.cancel();
        self.tracker.close();
        if tokio::time::timeout_at(deadline, self.tracker.wait())
            .await
            .is_err()
        {
            tracing::warn!("some tasks did not end in time");
        }
        self.own_bus.shut_down().await;
    }
}

/// Sends a ping after each connect: a bus that has too many clients ends those first that never sent anything, and an idle
/// service sends nothing.
async fn greet_bus(client: BusClient) {
    let mut connection = client.connection();
    loop {
        if connection.borrow_and_update().is_up() {
            client.ping();
        }
        if connection.changed().await.is_err() {
            return;
        }
    }
}

fn client_config(config: &Config) -> ClientConfig {
    ClientConfig {
        first_retry: config.service.reconnect_first,
        max_retry: config.service.reconnect_max,
        drop_above: config.bus.max_message_bytes,
        answer_queue: config.service.max_calls,
        extra_ca: config.bus.ssl_cert.clone(),
        ..ClientConfig::new(config.bus.url.clone())
    }
}

fn notify(states: &[sd_notify::NotifyState<'_>]) {
    // Without systemd there is nothing to notify; that is not an error.
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd was not notified");
    }
}
