//! The messagebus that the service runs itself, where the configuration asks for one.

use std::time::Duration;

use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use bus::{BindError, EmbeddedBus, ServerConfig, reachable};
use config::{Config, EmbeddedBus as Mode};

/// How long it may take to part with its clients.
const FAREWELL: Duration = Duration::from_secs(1);

/// A bus of our own, or none. It ends when it is dropped.
pub(super) struct OwnBus {
    url: Option<String>,
    tracker: TaskTracker,
    end: CancellationToken,
    _end: DropGuard,
}

impl OwnBus {
    /// Starts one if the configuration asks for it.
    ///
    /// # Errors
    /// The address cannot be listened on.
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

    /// Where it listens.
    pub(super) fn url(&self) -> Option<String> {
        self.url.clone()
    }

    /// Ends it. It goes last of all parts of the service: the answers have to get through it.
    pub(super) async fn shut_down(self) {
        self.end.cancel();
        self.tracker.close();
        if tokio::time::timeout(FAREWELL, self.tracker.wait()).await.is_err() {
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
