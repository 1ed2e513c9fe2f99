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
mod moving;
mod own_bus;
mod questions;
mod router;
mod state;
mod toolboxes;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::api::{Api, BusStatus, Settings, StatusResponse};
use crate::bus::{BindError, BusClient, ClientConfig};
use crate::config::{Config, ConfigErrors, OnBusLoss, Overrides};
use crate::engine::{Engine, MotionWatch, StopTarget};
use crate::logs::Logs;
use crate::registry::Registry;

use bus_outbox::BusOutbox;
use call_log::CallLog;
use configuration::Configuration;
use moving::MovingFile;
use own_bus::OwnBus;
use router::Router;
use state::{LatchFile, Remembered};
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
        let latches = LatchFile::new(&config.service.state_dir);
        let (latched, unknown) = match latches.read() {
            Remembered::Latched(latched) => (latched, None),
            Remembered::Unknown(why) => (HashMap::new(), Some(why)),
        };
        let engine = Arc::new(Engine::new(config.service.max_calls, latched));
        latch_what_moved(&engine, &latches, MovingFile::new(&config.service.state_dir)).await;
        let registry = Arc::new(Registry::default());
        let outbox = Arc::new(BusOutbox::default());
        let bridge = Bridge::start(toolboxes::Parts {
            configuration: Configuration::new(config.clone(), overrides, logs),
            engine: engine.clone(),
            registry: registry.clone(),
            outbox: outbox.clone(),
            latches,
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
            tracker,
            end,
        };
        // Before the bus: a client that finds the service finds its tools too.
        running.bridge.load().await;
        if let Some(why) = unknown {
            let reason = format!("it is not known which toolboxes were in emergency stop: {why}");
            running.api.stop(&StopTarget::All, &reason).await;
        }
        running.connect();
        running.api.set_ready(true);
        Ok(running)
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

/// Latches the toolboxes that moved when the service before this one was killed, and remembers from now on what moves:
/// they have come to rest by themselves, and nothing moves again before somebody has looked.
async fn latch_what_moved(engine: &Arc<Engine>, latches: &LatchFile, moving: MovingFile) {
    let left = moving.left_behind();
    for toolbox_id in &left {
        // Halted when it comes; there is nobody to confirm anything yet.
        drop(engine.stop_itself(toolbox_id, "the service ended while it moved something"));
    }
    if left.is_empty() || latches.keep(engine).await.is_ok() {
        // Not before the latches are written: one of the two files names them at any time.
        moving.changed(&[]);
    }
    engine.watch_motion(Box::new(moving));
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
    // Without systemd there is nobody to notify, and that is fine.
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
