//! What happens to motion when the bus goes away: nobody could say "stop" any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::bus::Connection;
use crate::engine::Engine;

/// Ends the calls that move something whenever the bus has been away for `limit`, until the shutdown.
pub(super) async fn watch(
    mut connection: watch::Receiver<Connection>,
    engine: Arc<Engine>,
    limit: Duration,
    shutdown: CancellationToken,
) {
    loop {
        let now = *connection.borrow_and_update();
        let waited = async {
            match now {
                Connection::Away { since } => {
                    tokio::time::sleep_until(since + limit).await;
                    let ended = engine.bus_lost(limit);
                    if ended > 0 {
                        tracing::error!(
                            ended,
                            away_ms = limit.as_millis(),
                            "the bus is away: motion is halted"
                        );
                    }
                }
                Connection::Up { .. } => {}
            }
            // Nothing new can start until the bus is back: requests come over it.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = waited => {}
            changed = connection.changed() => if changed.is_err() { return },
            () = shutdown.cancelled() => return,
        }
    }
}
