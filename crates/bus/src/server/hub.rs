//! The connected clients and their send queues.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::config::ServerConfig;
use super::partial_messages::PartialMessages;
use crate::websocket::origin::{Foreign, OriginPolicy};

/// Encoded frames, shared by all clients.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub(super) bytes: Bytes,
    pub(super) messages: usize,
}

impl Batch {
    /// One frame with a message.
    pub(super) fn single(frame: Vec<u8>) -> Self {
        Self {
            bytes: frame.into(),
            messages: 1,
        }
    }
}

/// Where a batch goes in the queue of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Behind everything.
    Last,
    /// Before all batches of order `Last`; a frame that is being written is finished first.
    Overtakes,
}

/// Bytes that are written at once. An urgent frame waits for at most this much, or for one longer frame.
const GATHER: usize = 256 * 1024;

/// The shortest time between two log lines about refused requests.
const REMINDER: Duration = Duration::from_secs(10);

/// The registry of connected clients.
pub(super) struct Hub {
    config: ServerConfig,
    origin_policy: OriginPolicy,
    unfinished: PartialMessages,
    clients: Mutex<Vec<Arc<Outbox>>>,
    /// When a refused request was last logged.
    last_logged: Mutex<Option<Instant>>,
}

impl Hub {
    pub(super) fn new(config: ServerConfig) -> Self {
        Self {
            origin_policy: OriginPolicy::new(
                config.hosts.iter().map(String::as_str),
                config.origins.iter().map(String::as_str),
            ),
            unfinished: PartialMessages::new(config.unfinished_bytes),
            clients: Mutex::new(Vec::new()),
            last_logged: Mutex::new(None),
            config,
        }
    }

    pub(super) fn origin_policy(&self) -> &OriginPolicy {
        &self.origin_policy
    }

    pub(super) fn unfinished(&self) -> &PartialMessages {
        &self.unfinished
    }

    /// Logs a request that was refused, once in a while: a page may try again and again.
    pub(super) fn refused(&self, from: SocketAddr, foreign: &Foreign) {
        let mut logged = self.last_logged.lock();
        if logged.is_none_or(|logged| logged.elapsed() >= REMINDER) {
            *logged = Some(Instant::now());
            tracing::warn!(client = %from, reason = %foreign, "the embedded bus refused a client");
        } else {
            tracing::debug!(client = %from, reason = %foreign, "the embedded bus refused a client");
        }
    }

    pub(super) fn config(&self) -> &ServerConfig {
        &self.config
    }

    pub(super) fn join(&self, client: Arc<Outbox>) {
        self.clients.lock().push(client);
    }

    pub(super) fn leave(&self, client: &Arc<Outbox>) {
        self.clients.lock().retain(|other| !Arc::ptr_eq(other, client));
    }

    /// Queues a batch for every client. All clients see all batches of the same [`Order`] in the same order, because the
    /// lock is held throughout; nothing under it waits. A client whose queue is full is disconnected.
    pub(super) fn relay(&self, batch: &Batch, order: Order) {
        self.clients.lock().retain(|client| {
            let taken = client.push(batch, order, &self.config);
            if !taken {
                tracing::warn!(client = %client.from, "disconnected a client that does not read");
                client.gone.cancel();
            }
            taken
        });
    }
}

/// The send queue of one client, bounded by the configuration in messages and in bytes.
pub(super) struct Outbox {
    from: SocketAddr,
    waiting: Mutex<SendQueue>,
    more: Notify,
    /// Cancelled to disconnect the client without sending the rest of the queue.
    pub(super) gone: CancellationToken,
}

#[derive(Default)]
struct SendQueue {
    urgent: VecDeque<Batch>,
    batches: VecDeque<Batch>,
    messages: usize,
    bytes: usize,
    closed: bool,
}

impl SendQueue {
    fn pop(&mut self) -> Option<Bytes> {
        let batch = self.urgent.pop_front().or_else(|| self.batches.pop_front())?;
        self.messages -= batch.messages;
        self.bytes -= batch.bytes.len();
        Some(batch.bytes)
    }
}

impl Outbox {
    pub(super) fn new(from: SocketAddr, gone: CancellationToken) -> Self {
        Self {
            from,
            waiting: Mutex::default(),
            more: Notify::new(),
            gone,
        }
    }

    /// Queues a batch; false if there is no room. An empty queue takes a batch of any size, and a closed one drops it.
    pub(super) fn push(&self, batch: &Batch, order: Order, config: &ServerConfig) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return true;
        }
        let messages = waiting.messages + batch.messages;
        let bytes = waiting.bytes + batch.bytes.len();
        let room = messages <= config.client_queue_messages && bytes <= config.client_queue_bytes;
        if !room && waiting.messages > 0 {
            return false;
        }
        match order {
            Order::Last => waiting.batches.push_back(batch.clone()),
            Order::Overtakes => waiting.urgent.push_back(batch.clone()),
        }
        (waiting.messages, waiting.bytes) = (messages, bytes);
        drop(waiting);
        self.more.notify_one();
        true
    }

    /// Moves the next batches, of about [`GATHER`] bytes together, into `into`; waits while the queue is empty. False when
    /// the queue is closed and empty.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn take(&self, into: &mut Vec<Bytes>) -> bool {
        loop {
            {
                let mut waiting = self.waiting.lock();
                let mut taken = 0;
                while taken < GATHER
                    && let Some(bytes) = waiting.pop()
                {
                    taken += bytes.len();
                    into.push(bytes);
                }
                if taken > 0 {
                    return true;
                }
                if waiting.closed {
                    return false;
                }
            }
            self.more.notified().await;
        }
    }

    /// Queues a last frame, even beyond the bounds, and ignores later ones.
    pub(super) fn close(&self, last: Vec<u8>) {
        let mut waiting = self.waiting.lock();
        if !waiting.closed {
            waiting.closed = true;
            waiting.bytes += last.len();
            waiting.batches.push_back(Batch {
                bytes: last.into(),
                messages: 0,
            });
            drop(waiting);
            self.more.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_with_a_full_queue_that_is_closed_gets_the_rest_and_the_last_frame() {
        let config = ServerConfig {
            client_queue_messages: 2,
            ..ServerConfig::default()
        };
        let outbox = Outbox::new(SocketAddr::from(([127, 0, 0, 1], 9)), CancellationToken::new());
        let push = || outbox.push(&Batch::single(vec![1]), Order::Last, &config);
        assert_eq!([push(), push(), push()], [true, true, false]);
        outbox.close(vec![2]);
        assert!(push(), "it does not count as a client that does not read");
        let mut frames = Vec::new();
        while outbox.take(&mut frames).await {}
        assert_eq!(frames, [vec![1], vec![1], vec![2]]);
    }
}
