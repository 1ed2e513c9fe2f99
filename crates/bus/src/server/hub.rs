//! The connected clients and their send queues.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::ServerConfig;

/// Encoded frames, shared by all clients.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub(super) bytes: Bytes,
    pub(super) messages: usize,
}

/// The registry of connected clients.
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

    /// Queues a batch for every client. All clients see all batches in the same order, because the lock is held
    /// throughout; nothing under it waits. A client whose queue is full is disconnected.
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

/// The send queue of one client, bounded by the configuration in messages and in bytes.
pub(super) struct Outbox {
    from: SocketAddr,
    waiting: Mutex<Waiting>,
    more: Notify,
    /// Cancelled to disconnect the client without sending the rest of the queue.
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

    /// Queues a batch; false if there is no room. An empty queue takes a batch of any size.
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

    /// Moves all queued batches into `into`, in order; waits while the queue is empty. False when the queue is closed
    /// and empty.
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

    /// Queues a last frame, even beyond the bounds, and ignores later ones.
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
