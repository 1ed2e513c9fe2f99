//! Where the bus is, and the limits of a client.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use crate::in_process_link::InProcessLink;

/// Address of the bus, retry times and memory bounds.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// `ws://host:port/route`, or `wss`.
    pub url: Url,
    /// Delay before the first reconnect; doubles up to `max_retry`.
    pub first_retry: Duration,
    /// Longest delay between two attempts.
    pub max_retry: Duration,
    /// Longer frames, in bytes, are dropped on receipt and refused for sending: the bus would close the connection.
    pub drop_above: usize,
    /// Longer received frames, in bytes, end the connection. Counts as `drop_above` if it is less.
    pub message_limit: usize,
    /// How many messages may wait to be written; at least the number of calls in flight.
    pub answer_queue: usize,
    /// A PEM file of certificates to trust in addition to those of the machine.
    pub extra_ca: Option<PathBuf>,
    /// The link to the embedded bus, if the bus is in this process.
    pub own: Option<Arc<InProcessLink>>,
}

impl ClientConfig {
    /// The defaults for a bus at this address: retries after 200 ms doubling to 500 ms, frames up to 25 MiB, a queue
    /// of 4096 messages.
    pub fn new(url: Url) -> Self {
        Self {
            url,
            first_retry: Duration::from_millis(200),
            max_retry: Duration::from_millis(500),
            drop_above: 25 << 20,
            message_limit: 64 << 20,
            answer_queue: 4096,
            extra_ca: None,
            own: None,
        }
    }
}
