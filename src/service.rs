//! The service: connects the bus, the API, the engine and the toolboxes, and ends them in order.
//!
//! Owns every task (one tracker, one cancellation token) and the order of start and stop. It decides nothing about a call.
//! Read [`run`].

mod bus_loss;
mod bus_outbox;
mod configuration;
mod questions;
mod router;
mod state;
mod toolboxes;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::api::{Api, BusStatus, Settings, StatusResponse};
use crate::bus::{BindError, BusClient, ClientConfig, EmbeddedBus, ServerConfig, reachable};
use crate::config::{Config, ConfigErrors, EmbeddedBus as EmbeddedBusMode, OnBusLoss, Overrides};
use crate::engine::{Engine, StopTarget};
use crate::logs::Logs;
use crate::registry::Registry;

use bus_outbox::BusOutbox;
use configuration::Configuration;
use router::Router;
use state::LatchFile;
use toolboxes::Bridge;

/// How long all of it may take once the service goes down.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// The part of it that calls have to end: the machine's to come to rest (settle_ms), and a toolbox's to say so.
const CALLS_PATIENCE: Duration = Duration::from_millis(3500);

/// The part of it that is left for answers to be written after the toolboxes have closed.
const WRITING_PATIENCE: Duration = Duration::from_millis(500);

/// How long the service's own bus may take to part with its clients.
const FAREWELL: Duration = Duration::from_secs(1);

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

/// Runs the service until `start.shutdown`; SIGUSR1 is an emergency stop of everything. `started` is called once, when the toolboxes are loaded; the
/// bus may come later.
///
/// # Errors
/// See [`ServiceError`]. A toolbox that cannot be loaded and a bus that is away are no errors: both are reported and
/// tried again.
///
/// # Cancel safety
/// Dropping it leaves toolboxes open; cancel `start.shutdown` instead.
pub async fn run(start: Start, started: impl FnOnce(&Started)) -> Result<(), ServiceError> {
    let begun = Instant::now();
    let mut emergency = signal(SignalKind::user_defined1()).map_err(ServiceError::Signal)?;
    let Start {
        config,
        overrides,
        logs,
        shutdown,
    } = start;
    let tracker = TaskTracker::new();
    // Falls after the calls have ended and been answered; the tasks below live until then.
    let end = CancellationToken::new();

    let embedded = embedded_bus(&config).await?;
    let embedded_url = embedded.as_ref().map(EmbeddedBus::url);
    // The service's own bus goes last: the answers have to get through it.
    let (bus_tracker, bus_end) = (TaskTracker::new(), CancellationToken::new());
    let _bus_end = bus_end.clone().drop_guard();
    if let Some(bus) = embedded {
        bus_tracker.spawn(bus.run(bus_end.clone()));
    }

    let latches = LatchFile::new(&config.service.state_dir);
    let engine = Arc::new(Engine::new(config.service.max_calls, latches.read()));
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
    let router = Router::start(
        api.clone(),
        bridge.clone(),
        tracker.clone(),
        end.clone(),
        config.service.max_calls,
        config.service.answer_as_phal,
    );
    bridge.connect_router(router.clone());
    bridge.load().await;
    outbox.connect(BusClient::start(
        client_config(&config),
        router.clone(),
        &tracker,
        end.clone(),
    ));
    if let (OnBusLoss::Halt, Some(client)) = (config.service.on_bus_loss, outbox.client()) {
        let limit = config.service.on_bus_loss_after;
        tracker.spawn(bus_loss::watch(
            client.connection(),
            engine.clone(),
            limit,
            end.clone(),
        ));
    }
    api.set_ready(true);
    let status = api.status();
    started(&Started {
        status,
        bus: config.bus.url.clone(),
        embedded_bus: embedded_url,
        took: begun.elapsed(),
    });
    notify(&[sd_notify::NotifyState::Ready]);

    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            _ = emergency.recv() => {
                tracing::warn!("SIGUSR1: emergency stop of everything");
                api.stop(&StopTarget::All, "SIGUSR1").await;
            }
        }
    }

    tracing::info!("shutting down");
    notify(&[sd_notify::NotifyState::Stopping]);
    api.set_ready(false);
    let deadline = tokio::time::Instant::now() + SHUTDOWN_PATIENCE;
    engine.shut_down();
    // A toolbox that closes loses its calls; first they end and are answered.
    if tokio::time::timeout(CALLS_PATIENCE, router.answered())
        .await
        .is_err()
    {
        tracing::warn!(
            calls = engine.calls_in_flight(),
            "some requests are still under way; closing the toolboxes"
        );
    }
    bridge
        .shut_down(deadline.saturating_duration_since(tokio::time::Instant::now() + WRITING_PATIENCE))
        .await;
    if tokio::time::timeout_at(deadline, router.answered())
        .await
        .is_err()
    {
        tracing::error!(
            calls = engine.calls_in_flight(),
            "some requests were not answered"
        );
    }
    if let Some(client) = outbox.client()
        && client.connection_now().is_up()
    {
        client.flush(deadline).await;
    }
    end.cancel();
    tracker.close();
    if tokio::time::timeout_at(deadline, tracker.wait()).await.is_err() {
        tracing::warn!("some tasks did not end in time");
    }
    bus_end.cancel();
    bus_tracker.close();
    if tokio::time::timeout(FAREWELL, bus_tracker.wait()).await.is_err() {
        tracing::warn!("the embedded bus did not end in time");
    }
    Ok(())
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

async fn embedded_bus(config: &Config) -> Result<Option<EmbeddedBus>, ServiceError> {
    let url = &config.bus.url;
    let wanted = match config.service.embedded_bus {
        EmbeddedBusMode::Never => false,
        EmbeddedBusMode::Always => true,
        EmbeddedBusMode::Auto => is_local(url) && !reachable(url).await,
    };
    if !wanted {
        return Ok(None);
    }
    let server = ServerConfig {
        host: config.service.embedded_bus_host.clone(),
        port: url.port_or_known_default().unwrap_or(8181),
        route: url.path().to_owned(),
        max_message: config.bus.max_message_bytes,
        ..ServerConfig::default()
    };
    Ok(Some(EmbeddedBus::bind(server).await?))
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
        Some(url::Host::Ipv6(address)) => address.is_loopback() || address.is_unspecified(),
        None => false,
    }
}

fn notify(states: &[sd_notify::NotifyState<'_>]) {
    // Without systemd there is nobody to notify, and that is fine.
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd was not notified");
    }
}

fn bus_status(client: Option<&BusClient>, url: &Url, dropped: u64) -> BusStatus {
    let counters = client.map(BusClient::counters).unwrap_or_default();
    let rows = [
        ("connections", counters.connections),
        ("notices_dropped", counters.notices_dropped),
        ("answers_resent", counters.answers_resent),
        ("answers_given_up", counters.answers_given_up),
        ("frames_dropped", counters.frames_dropped),
        ("requests_dropped", dropped),
    ];
    BusStatus {
        url: url.to_string(),
        connected: client.is_some_and(|client| client.connection_now().is_up()),
        counters: rows
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count))
            .collect(),
    }
}
