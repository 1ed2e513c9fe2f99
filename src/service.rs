//! The service: connects the bus, the API, the engine and the toolboxes, and ends them in order.
//!
//! Owns every task (one tracker, one cancellation token) and the order of start and stop. It decides nothing about a call.
//! Read [`run`].

mod bus_loss;
mod bus_outbox;
mod call_log;
mod configuration;
mod desk;
#[cfg(test)]
mod desk_tests;
mod own_bus;
mod questions;
mod router;
mod state;
mod state_writer;
mod toolboxes;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::api::{Api, BusStatus, Settings, StatusResponse};
use crate::logs::Logs;
use crate::registry::Registry;
use bus::{BindError, BusClient, ClientConfig};
use config::{Config, ConfigErrors, OnBusLoss, Overrides};
use engine::{Engine, MotionWatch, StopTarget};

use bus_outbox::BusOutbox;
use call_log::CallLog;
use configuration::Configuration;
use own_bus::OwnBus;
use router::Router;
use state::StateFolder;
use state_writer::StateWriter;
use toolboxes::Bridge;

/// How long all of it may take once the service goes down.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// The part of it that calls have to end: the machine's to come to rest (settle_ms), and a toolbox's to say so. A machine
/// with a longer settle_ms has that and [`SAYING_PATIENCE`].
const CALLS_PATIENCE: Duration = Duration::from_millis(3500);

/// How long a toolbox has to say that its machine is at rest.
const SAYING_PATIENCE: Duration = Duration::from_millis(500);

/// The part of it that is left for answers to be written after the toolboxes have closed.
const WRITING_PATIENCE: Duration = Duration::from_millis(500);

/// How long the state folder may take to remember what the service found there when it started.
const RECORD_PATIENCE: Duration = Duration::from_secs(1);

/// Why the service cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The embedded bus cannot listen.
    #[error(transparent)]
    Bus(#[from] BindError),
    /// A signal cannot be caught.
    #[error("catch signals: {0}")]
    Signal(std::io::Error),
    /// What outlives the service cannot be read or written.
    #[error("set up the state folder: {0}")]
    State(std::io::Error),
    /// The toolbox host cannot be set up.
    #[error("set up the toolboxes: {0}")]
    Toolboxes(String),
}

/// What the service is told from outside.
pub struct Start {
    /// The configuration in force.
    pub config: Arc<Config>,
    /// What the command line decides over the files; needed to read them again.
    pub overrides: Overrides,
    /// The log, whose level can change while the service runs. None in tests.
    pub logs: Option<Logs>,
    /// Ends the service.
    pub shutdown: CancellationToken,
}

/// The service as it has come up.
#[derive(Debug)]
pub struct Started {
    /// What `ovos.tools.status` would answer now.
    pub status: StatusResponse,
    /// The bus it connects to.
    pub bus: Url,
    /// The bus it runs itself, if any.
    pub embedded_bus: Option<String>,
    /// From the start of [`run`] until every toolbox was loaded.
    pub took: Duration,
}

/// Runs the service until `start.shutdown`; SIGUSR1 is an emergency stop of everything. `started` is called once, when the
/// toolboxes are loaded; the bus may come later.
///
/// # Errors
/// See [`ServiceError`]. A toolbox that cannot be loaded and a bus that is away are no errors: both are reported and
/// tried again.
///
/// # Cancel safety
/// Dropping it leaves toolboxes open; cancel `start.shutdown` instead.
pub async fn run(start: Start, started: impl FnOnce(&Started)) -> Result<(), ServiceError> {
    let begun = Instant::now();
    // Caught before anything is loaded: without a handler the signal would end the process.
    let emergency = signal(SignalKind::user_defined1()).map_err(ServiceError::Signal)?;
    let shutdown = start.shutdown.clone();
    let running = Running::start(start).await?;
    running.tracker.spawn(stop_on_signal(
        emergency,
        running.api.clone(),
        running.end.clone(),
    ));
    started(&running.summary(begun.elapsed()));
    notify(&[sd_notify::NotifyState::Ready]);
    shutdown.cancelled().await;
    notify(&[sd_notify::NotifyState::Stopping]);
    running.shut_down().await;
    Ok(())
}

/// SIGUSR1 is an emergency stop of everything, also while the service goes down.
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

/// The parts of a service that is up.
struct Running {
    config: Arc<Config>,
    engine: Arc<Engine>,
    api: Arc<Api>,
    router: Arc<Router>,
    bridge: Arc<Bridge>,
    outbox: Arc<BusOutbox>,
    own_bus: OwnBus,
    state: Arc<StateWriter>,
    tracker: TaskTracker,
    /// Falls after the calls have ended and been answered; the tasks live until then.
    end: CancellationToken,
}

impl Running {
    async fn start(start: Start) -> Result<Self, ServiceError> {
        let Start {
            config,
            overrides,
            logs,
            shutdown: _,
        } = start;
        let (tracker, end) = (TaskTracker::new(), CancellationToken::new());
        let own_bus = OwnBus::start(&config).await?;
        let state_dir = config.service.state_dir.clone();
        let read = tokio::task::spawn_blocking(move || StateFolder::read(&state_dir));
        let (folder, latched) = read.await.map_err(|error| ServiceError::State(error.into()))?;
        let engine = Arc::new(Engine::new(config.service.max_calls, latched));
        let (state, writing) = StateWriter::new();
        engine.watch_motion(state.clone());
        let registry = Arc::new(Registry::default());
        let outbox = Arc::new(BusOutbox::default());
        let bridge = Bridge::start(toolboxes::Parts {
            configuration: Arc::new(Configuration::new(config.clone(), overrides, logs)),
            engine: engine.clone(),
            registry: registry.clone(),
            outbox: outbox.clone(),
            state: state.clone(),
            tracker: tracker.clone(),
            end: end.clone(),
        })?;
        let settings = Settings {
            operator_tools: config.service.operator_tools,
            max_answer_bytes: config.bus.max_message_bytes,
        };
        let api = Arc::new(Api::new(
            engine.clone(),
            registry,
            bridge.clone(),
            outbox.clone(),
            settings,
        ));
        if config.service.log_calls {
            match CallLog::start(&config.service.state_dir) {
                Ok(log) => api.log_calls(Box::new(log)),
                Err(error) => tracing::error!(%error, "calls are not logged (service.log_calls)"),
            }
        }
        let router = Router::start(
            api.clone(),
            bridge.clone(),
            tracker.clone(),
            end.clone(),
            config.service.max_calls,
            config.service.answer_as_phal,
        );
        bridge.connect_router(&router);
        let running = Self {
            config,
            engine,
            api,
            router,
            bridge,
            outbox,
            own_bus,
            state,
            tracker,
            end,
        };
        // Before the bus: a client that finds the service finds its tools too.
        running.bridge.load().await;
        // Nothing is overwritten before what it says has been served: what is there is latched and halted by now.
        writing.start(folder).map_err(ServiceError::State)?;
        running.remember_start().await;
        running.connect();
        running.api.set_ready(true);
        Ok(running)
    }

    /// Has what was left behind remembered as what it led to.
    async fn remember_start(&self) {
        // An error is in the log, and comes with every answer to a stop.
        _ = self.state.keep(&self.engine, RECORD_PATIENCE).await;
        self.state.changed(&[]);
    }

    /// Starts the bus client, and what watches over it.
    fn connect(&self) {
        let config = client_config(&self.config);
        let client = BusClient::start(config, self.router.clone(), &self.tracker, self.end.clone());
        if self.config.service.on_bus_loss == OnBusLoss::Halt {
            let limit = self.config.service.on_bus_loss_after;
            let watch = bus_loss::watch(client.clone(), self.engine.clone(), limit, self.end.clone());
            self.tracker.spawn(watch);
        }
        self.outbox.connect(client);
    }

    fn summary(&self, took: Duration) -> Started {
        Started {
            status: self.api.status(),
            bus: self.config.bus.url.clone(),
            embedded_bus: self.own_bus.url(),
            took,
        }
    }

    /// Ends the calls, then the toolboxes, then the connection; every request is answered on the way.
    async fn shut_down(self) {
        tracing::info!("shutting down");
        self.api.set_ready(false);
        let calls_patience = CALLS_PATIENCE.max(self.engine.longest_settle() + SAYING_PATIENCE);
        let deadline = tokio::time::Instant::now() + SHUTDOWN_PATIENCE - CALLS_PATIENCE + calls_patience;
        self.engine.shut_down();
        // A toolbox that closes loses its calls; first they end and are answered.
        if tokio::time::timeout(calls_patience, self.router.answered())
            .await
            .is_err()
        {
            let calls = self.engine.calls_in_flight();
            tracing::warn!(calls, "some requests are still under way; closing the toolboxes");
        }
        let rest = deadline.saturating_duration_since(tokio::time::Instant::now() + WRITING_PATIENCE);
        self.bridge.shut_down(rest).await;
        if tokio::time::timeout_at(deadline, self.router.answered())
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
        // What moved has come to rest; without this record the next service would hold it.
        if let Err(why) = self.state.flush(WRITING_PATIENCE).await {
            tracing::error!(
                why,
                "the last change of what is latched or moves is not remembered"
            );
        }
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
    // Without systemd there is nothing to notify, and that is fine.
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd was not notified");
    }
}

fn bus_status(client: Option<&BusClient>, url: &Url, (turned_away, dropped): (u64, u64)) -> BusStatus {
    let counters = client.map(BusClient::counters).unwrap_or_default();
    let rows = [
        ("connections", counters.connections),
        ("notices_dropped", counters.notices_dropped),
        ("answers_resent", counters.answers_resent),
        ("answers_given_up", counters.answers_given_up),
        ("frames_dropped", counters.frames_dropped),
        ("requests_turned_away", turned_away),
        ("requests_dropped", dropped),
    ];
    BusStatus {
        url: url.to_string(),
        connected: client.is_some_and(|client| client.connection_now().is_up()),
        echoes: client.is_some_and(BusClient::echoes),
        counters: rows
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count))
            .collect(),
    }
}
