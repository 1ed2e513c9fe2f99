//! The signals that end the program.

use signals::Ending;
use tokio_util::sync::CancellationToken;

use super::error::CliError;

/// Returns a token that the first signal which ends the program cancels.
///
/// # Errors
/// The signals cannot be caught.
pub fn shut_down_on_signal() -> Result<CancellationToken, CliError> {
    let mut ending = Ending::listen().map_err(no_signals)?;
    let shutdown = CancellationToken::new();
    let token = shutdown.clone();
    // This task is owned by the runtime: it waits for signals until the process ends.
    tokio::spawn(async move {
        let signal = ending.next().await;
        tracing::info!("{signal}: the end");
        token.cancel();
    });
    Ok(shutdown)
}

/// The error of a program that cannot catch its signals.
#[must_use]
pub fn no_signals(cause: std::io::Error) -> CliError {
    CliError::Machine {
        what: "listen for signals".to_owned(),
        cause,
    }
}
