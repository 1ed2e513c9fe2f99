//! The embedded messagebus, if the configuration enables it.

use std::time::Duration;

use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use bus::{BindError, EmbeddedBus, ServerConfig, reachable};
use config::{Config, EmbeddedBus as Mode};

/// How long the shutdown waits for the clients of the bus to disconnect.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// The embedded bus, or none. The bus ends when this is dropped.
pub(super) struct OwnBus {
    url: Option<String>,
    tracker: TaskTracker,
    end: CancellationToken,
    _end: DropGuard,
}

impl OwnBus {
    /// Starts the bus if the configuration enables it.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub(super) async fn start(config: &Config) -> Result<Self, BindError> {
        let (tracker, end) = (TaskTracker::new(), CancellationToken::new());
        let mut url = None;
        if is_wanted(config).await {
            let bus = EmbeddedBus::bind(server_config(config)).await?;
            url = Some(bus.url());
            tracker.spawn(bus.run(end.clone()));
        }
        let guard = end.clone().drop_guard();
        Ok(Self {
            url,
            tracker,
            end,
            _end: guard,
        })
    }

    /// The address for clients; none if no bus runs.
    pub(super) fn url(&self) -> Option<String> {
        self.url.clone()
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

fn server_config(config: &Config) -> ServerConfig {
    let url = &config.bus.url;
    ServerConfig {
        host: config.service.embedded_bus_host.clone(),
        port: url.port_or_known_default().unwrap_or(8181),
        route: url.path().to_owned(),
        max_message: config.bus.max_message_bytes,
        ..ServerConfig::default()
    }
}
