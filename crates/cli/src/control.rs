//! Sends requests to the service of this machine through its control socket, without the bus.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::context::Context;
use super::error::CliError;
use client::payload::{ControlAnswer, ControlRequest};

/// The longest answer, in bytes.
const LONGEST: u64 = 16 << 20;

/// Sends a request and returns its answer, both as raw JSON and parsed.
pub(super) fn send(
    request: &ControlRequest,
    context: &mut Context<'_, '_>,
) -> Result<(Value, ControlAnswer), CliError> {
    let path = context.config()?.control_socket();
    let answer = exchange(&path, request, context.wait()).map_err(|cause| CliError::Machine {
        what: format!(
            "reach the service on this machine through {} (is `ovos-tools serve` running as this user?)",
            path.display()
        ),
        cause,
    })?;
    let data = serde_json::from_value(answer.clone()).unwrap_or_default();
    Ok((answer, data))
}

/// Sends a request to the socket and returns its answer as raw JSON. `wait` is for each of the two. Blocks.
pub(super) fn exchange(path: &Path, request: &ControlRequest, wait: Duration) -> std::io::Result<Value> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(wait))?;
    stream.set_write_timeout(Some(wait))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}
