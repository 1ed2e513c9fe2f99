//! Requests to the control socket of the service, which also answers when the bus does not.

use std::io;
use std::path::Path;
use std::time::Duration;

use client::payload::{ControlAnswer, ControlRequest};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// The longest answer, in bytes.
const LONGEST: u64 = 16 << 20;

/// Sends a request and waits for its answer.
///
/// # Errors
/// The service does not answer within `wait`.
///
/// # Cancel safety
/// If dropped, the request may have been sent.
pub(crate) async fn ask(
    socket: &Path,
    request: &ControlRequest,
    wait: Duration,
) -> io::Result<ControlAnswer> {
    let exchange = async {
        let mut stream = UnixStream::connect(socket).await?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line).await?;
        let mut answer = String::new();
        BufReader::new(stream.take(LONGEST))
            .read_line(&mut answer)
            .await?;
        Ok(serde_json::from_str(&answer)?)
    };
    timeout(wait, exchange)
        .await
        .unwrap_or_else(|late| Err(late.into()))
}
