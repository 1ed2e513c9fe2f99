//! Requests to the control socket of the service on this machine, which also answers when the bus does not.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::payload::{ControlAnswer, ControlRequest};

/// The longest answer, in bytes.
const LONGEST: u64 = 16 << 20;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The service was not reached: nothing was carried out.
    #[error("{0}")]
    NotReached(io::Error),
    /// The service was reached, and did not answer in time, or with something else than an answer: the request may have been, or may
    /// yet be, carried out.
    #[error("{0}")]
    NoAnswer(io::Error),
}

/// Sends a request and waits for its answer, which comes twice: as it was sent, and parsed. `wait` is for the connection, and again
/// for the answer.
///
/// # Errors
/// There is no answer.
///
/// # Cancel safety
/// If dropped, the request may have been sent.
pub async fn ask(
    socket: &Path,
    request: &ControlRequest,
    wait: Duration,
) -> Result<(Value, ControlAnswer), ControlError> {
    let connected = timeout(wait, UnixStream::connect(socket)).await;
    let stream = connected
        .unwrap_or_else(|late| Err(late.into()))
        .map_err(ControlError::NotReached)?;
    let answered = timeout(wait, exchange(stream, request)).await;
    answered
        .unwrap_or_else(|late| Err(late.into()))
        .map_err(ControlError::NoAnswer)
}

async fn exchange(mut stream: UnixStream, request: &ControlRequest) -> io::Result<(Value, ControlAnswer)> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut answer = String::new();
    BufReader::new(stream.take(LONGEST))
        .read_line(&mut answer)
        .await?;
    if answer.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let answer: Value = serde_json::from_str(&answer)?;
    let parsed = serde_json::from_value(answer.clone())?;
    Ok((answer, parsed))
}
