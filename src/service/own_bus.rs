//! The embedded messagebus, if the configuration enables it.

use std::sync::Arc;
use std::time::Duration;

use rustix::system::uname;
use tokio::runtime::Handle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use bus::{BindError, EmbeddedBus, InProcessLink, ServerConfig, reachable};
use config::{Config, EmbeddedBus as Mode};
use host::descriptors;

/// How long the shutdown waits for the clients of the bus to disconnect.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// How many bytes of unfinished messages the bus keeps for all clients together, at least: two of the largest have to
/// fit.
const UNFINISHED: usize = 64 << 20;

/// The embedded bus, or none. The bus ends when this is dropped.
pub(super) struct OwnBus {
    url: Option<String>,
    link: Option<Arc<InProcessLink>>,
    tracker: TaskTracker,
    end: CancellationToken,
    _end: DropGuard,
}

impl OwnBus {
    /// Starts the bus if the configuration enables it; `readers` is where it reads its clients.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub(super) async fn start(config: &Config, readers: &Handle) -> Result<Self, BindError> {
        let (tracker, end) = (TaskTracker::new(), CancellationToken::new());
        let (mut url, mut link) = (None, None);
        if is_wanted(config).await {
            let own = link.insert(Arc::new(InProcessLink::new())).clone();
            let config = ServerConfig {
                workers: Some(Handle::current()),
                ..server_config(config, own)
            };
            let bus = EmbeddedBus::bind(config).await?;
            url = Some(bus.url());
            tracker.spawn_on(bus.run(end.clone()), readers);
        }
        let guard = end.clone().drop_guard();
        Ok(Self {
            url,
            link,
            tracker,
            end,
            _end: guard,
        })
    }

    /// The address for clients; none if no bus runs.
    pub(super) fn url(&self) -> Option<String> {
        self.url.clone()
    }

    /// Connects the bus and the service's own client; none if no bus runs.
    pub(super) fn link(&self) -> Option<Arc<InProcessLink>> {
        self.link.clone()
    }

    /// Shuts the bus down. It is the last part of the service to end: the answers pass through it.
    pub(super) async fn shut_down(self) {
        self.end.cancel();
        self.tracker.close();
        if tokio::time::timeout(CLOSE_WAIT, self.tracker.wait())
            .await
            .is_err()
        {
            tracing::warn!("the embedded bus did not end in time");
        }
    }
}

async fn is_wanted(config: &Config) -> bool {
    match config.service.embedded_bus {
        Mode::Never => false,
        Mode::Always => true,
        Mode::Auto => config.bus.is_local() && !reachable(&config.bus.url).await,
    }
}

/// The settings of the embedded bus, also of one that runs alone.
#[must_use]
pub fn server_config(config: &Config, own: Arc<InProcessLink>) -> ServerConfig {
    let (url, service) = (&config.bus.url, &config.service);
    ServerConfig {
        host: service.embedded_bus_host.clone(),
        max_clients: max_clients(service.embedded_bus_clients),
        max_clients_per_address: service.embedded_bus_clients_per_address,
        unfinished_bytes: UNFINISHED.max(2 * config.bus.max_message_bytes),
        hosts: hosts(config),
        origins: service.embedded_bus_http_origins.clone(),
        own: Some(own),
        port: url.port_or_known_default().unwrap_or(8181),
        route: url.path().to_owned(),
        max_message: config.bus.max_message_bytes,
        ..ServerConfig::default()
    }
}

/// How many clients the bus takes: half of the descriptors that this process may open are for everything else.
fn max_clients(wanted: usize) -> usize {
    let most = descriptors::at_present() / 2;
    if wanted > most {
        tracing::info!(
            wanted,
            most,
            "the embedded bus accepts fewer clients than configured: they get at most half of the file descriptors (LimitNOFILE)"
        );
    }
    wanted.min(most)
}

/// The names under which clients may reach the bus: those that the configuration gives it, and those of this machine.
fn hosts(config: &Config) -> Vec<String> {
    let service = &config.service;
    let mut hosts = service.embedded_bus_http_hosts.clone();
    hosts.push(service.embedded_bus_host.clone());
    hosts.extend(config.bus.url.host_str().map(str::to_owned));
    if let Ok(name) = uname().nodename().to_str()
        && !name.is_empty()
    {
        let short = name.split('.').next().unwrap_or(name);
        hosts.extend([name.to_owned(), short.to_owned(), format!("{short}.local")]);
    }
    hosts
}
