//! What the program of a door does first: it waits for the bus, and ends when it is told to.

use std::time::Duration;

use client::{Address, Client, ClientError};
use config::Config;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// How long most requests to the service may take.
const WAIT: Duration = Duration::from_secs(5);

/// How long the first connection to the bus is tried for: hosts start a door together with everything else.
const BUS_WAIT: Duration = Duration::from_secs(10);

/// Between two tries.
const BUS_AGAIN: Duration = Duration::from_millis(250);

/// Connects to the bus, which may start together with the door. `source` names the door in the context of its messages.
///
/// # Errors
/// There is no bus 10 s later.
///
/// # Cancel safety
/// Safe.
pub async fn connect(config: &Config, source: &str) -> Result<Client, ClientError> {
    let end = Instant::now() + BUS_WAIT;
    loop {
        let address = Address {
            url: config.bus.url.clone(),
            certificate: config.bus.ssl_cert.clone(),
        };
        match Client::connect(address, source, WAIT).await {
            Err(error) if Instant::now() < end => {
                tracing::debug!(%error, "no bus yet");
                sleep(BUS_AGAIN).await;
            }
            other => return other,
        }
    }
}

/// Cancels `shutdown` on SIGTERM and SIGINT.
///
/// # Errors
/// The system lets no more signals be heard.
pub fn on_signals(shutdown: CancellationToken) -> std::io::Result<JoinHandle<()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        shutdown.cancel();
    }))
}
