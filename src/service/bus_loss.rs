//! Halts motion when the bus is away: a stop request could not arrive then.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use bus::{BusClient, Connection};
use engine::Engine;

/// How long a connected but busy bus may be silent.
const SHORTEST_SILENCE: Duration = Duration::from_secs(1);

/// Ends the calls with running motion whenever the bus has been away for `limit`, until the shutdown. A connected bus
/// that does not respond (a pulled cable, a hung process) counts as away too, after `limit` and at least a second.
pub(super) async fn watch(
    client: BusClient,
    engine: Arc<Engine>,
    limit: Duration,
    shutdown: CancellationToken,
) {
    let mut connection = client.connection();
    loop {
        let now = *connection.borrow_and_update();
        let waited = async {
            match now {
                Connection::Away { since } => {
                    sleep_until(since + limit).await;
                    halt(&engine, limit);
                    // No motion can start until the bus is back: requests arrive over it, and runs have ended.
                    std::future::pending().await
                }
                Connection::Up { .. } => listen(&client, &engine, limit).await,
            }
        };
        tokio::select! {
            () = waited => return,
            changed = connection.changed() => if changed.is_err() { return },
            () = shutdown.cancelled() => return,
        }
    }
}

/// Pings the bus while something moves. Ends with the engine.
async fn listen(client: &BusClient, engine: &Engine, limit: Duration) {
    let silence = limit.max(SHORTEST_SILENCE);
    let pause = silence / 3;
    let mut motion = engine.motion();
    while motion.wait_for(|moves| *moves).await.is_ok() {
        let mut since = Instant::now();
        while *motion.borrow_and_update() {
            client.ping();
            let start = Instant::now();
            sleep(pause).await;
            if start.elapsed() > 2 * pause {
                // This process itself did not run; the silence proves nothing about the bus.
                since = Instant::now();
            }
            if client.last_heard().max(since).elapsed() > silence {
                halt(engine, silence);
            }
        }
    }
}

fn halt(engine: &Engine, away: Duration) {
    let ended = engine.bus_lost(away);
    if ended > 0 {
        tracing::error!(
            ended,
            away_ms = away.as_millis(),
            "the bus is disconnected: motion is halted"
        );
    }
}
