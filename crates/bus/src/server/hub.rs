//! Who is connected, and what waits for each of them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::ServerConfig;

/// Some frames as they go to the socket, encoded once for all clients.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub(super) bytes: Bytes,
    pub(super) messages: usize,
}

/// All clients.
pub(super) struct Hub {
    config: ServerConfig,
    clients: Mutex<Vec<Arc<Outbox>>>,
}

impl Hub {
    pub(super) fn new(config: ServerConfig) -> Self {
        Self {
            config,
            clients: Mutex::new(Vec::new()),
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

    /// Hands a batch to everybody. All clients see all batches in the same order: the lock is held
    /// throughout, and nothing waits under it. A client whose queue is full is let go.
    pub(super) fn relay(&self, batch: &Batch) {
        self.clients.lock().retain(|client| {
            let taken = client.push(batch, &self.config);
            if !taken {
                tracing::warn!(client = %client.from, "disconnected a client that does not read");
                client.gone.cancel();
            }
            taken
        });
    }
}

/// What waits for one client: bounded in messages and in bytes by the configuration.
pub(super) struct Outbox {
    from: SocketAddr,
    waiting: Mutex<Waiting>,
    more: Notify,
    /// The client is to be dropped at once.
    pub(super) gone: CancellationToken,
}

#[derive(Default)]
struct Waiting {
    batches: VecDeque<Bytes>,
    messages: usize,
    bytes: usize,
    closed: bool,
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

    /// False when there is no room.
    pub(super) fn push(&self, batch: &Batch, config: &ServerConfig) -> bool {
        let mut waiting = self.waiting.lock();
        let messages = waiting.messages + batch.messages;
        let bytes = waiting.bytes + batch.bytes.len();
        let room = messages <= config.client_queue_messages && bytes <= config.client_queue_bytes;
        if !room && waiting.messages > 0 {
            return false;
        }
        if !waiting.closed {
            waiting.batches.push_back(batch.bytes.clone());
            (waiting.messages, waiting.bytes) = (messages, bytes);
            drop(waiting);
            self.more.notify_one();
        }
        true
    }

    /// Takes everything that waits, in order; waits for something. False when nothing will come any more.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn take(&self, into: &mut Vec<Bytes>) -> bool {
        loop {
            {
                let mut waiting = self.waiting.lock();
                if !waiting.batches.is_empty() {
                    into.extend(waiting.batches.drain(..));
                    (waiting.messages, waiting.bytes) = (0, 0);
                    return true;
                }
                if waiting.closed {
                    return false;
                }
            }
            self.more.notified().await;
        }
    }

    /// Appends a last frame, however full; nothing follows.
    pub(super) fn close(&self, last: Vec<u8>) {
        let mut waiting = self.waiting.lock();
        if !waiting.closed {
            waiting.closed = true;
            waiting.batches.push_back(last.into());
            drop(waiting);
            self.more.notify_one();
        }
    }
}
