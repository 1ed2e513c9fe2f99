//! Serves one client at stdin and stdout. Nothing but the protocol is written to stdout.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio_pipes;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::lines::Lines;
use crate::padding::narrow;
use crate::presence::Watched;
use crate::server::Session;
use crate::shared::Door;

/// How long the calls of a client that is gone may take to end.
const END_WAIT: Duration = Duration::from_secs(5);

/// Serves the client until it is gone or the door closes. On return, its calls have ended or were asked to end.
///
/// # Errors
/// The client does not speak the protocol.
///
/// # Cancel safety
/// Not safe: calls may go on; cancel the door's shutdown instead.
pub(crate) async fn serve(door: &Arc<Door>) -> Result<(), Box<ServerInitializeError>> {
    let gone = CancellationToken::new();
    let (read, write) = stdio_pipes();
    let transport = Lines::new(
        door,
        Watched::new(read, gone.clone(), gone.clone()),
        Watched::new(write, gone.clone(), gone.clone()),
        narrow(std::io::stdout()),
    );
    let session = Session::new(Arc::clone(door), gone.clone());
    let served = session
        .serve_with_ct(transport, door.link.shutdown.child_token())
        .await;
    let running = match served {
        Ok(running) => running,
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(Box::new(error)),
    };
    // The library waits for the answers of calls under way. They end because the client is gone.
    let mut waiting = pin!(running.waiting());
    let ended = tokio::select! {
        ended = waiting.as_mut() => Some(ended),
        () = gone.cancelled() => {
            tracing::debug!("the client is gone");
            timeout(END_WAIT, waiting).await.ok()
        }
    };
    if let Some(Err(error)) = ended {
        tracing::error!(%error, "the connection ended with a panic");
    }
    gone.cancel();
    if timeout(END_WAIT, door.link.calls.none_left()).await.is_err() {
        tracing::warn!("calls did not end within {END_WAIT:?}");
    }
    Ok(())
}
