//! What outlives a single connection: the queues, the answers whose echo has not arrived, the counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;
use tungstenite::Utf8Bytes;

use super::config::ClientConfig;
use super::delivery::Delivery;

/// Total size in bytes of the messages that wait to be written; also the bound of the answers that are written and
/// not yet echoed.
pub(super) const ANSWER_BYTES: usize = 64 << 20;

/// Whether the client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// Connected.
    Up {
        /// When the handshake ended.
        since: Instant,
    },
    /// Not connected.
    Away {
        /// When the connection was lost, or the client started.
        since: Instant,
    },
}

impl Connection {
    /// Whether the client is connected.
    pub fn is_up(&self) -> bool {
        matches!(self, Connection::Up { .. })
    }
}

/// Counters since the start of the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientCounters {
    /// Connections established.
    pub connections: u64,
    /// Progress and events dropped because the queue was full or the bus was away.
    pub notices_dropped: u64,
    /// Writes of an answer, or of the error in its place, after a lost connection.
    pub answers_resent: u64,
    /// Answers that were never echoed and are not sent again, because the buffer was full, or after three writes.
    pub answers_given_up: u64,
    /// Received frames dropped because they were too long or not UTF-8.
    pub frames_dropped: u64,
}

/// What waits to be written.
pub(super) struct Queues {
    /// Written first.
    pub(super) urgent: mpsc::Receiver<Outgoing>,
    pub(super) rest: mpsc::Receiver<Outgoing>,
}

impl Queues {
    pub(super) fn try_next(&mut self) -> Option<Outgoing> {
        self.urgent.try_recv().or_else(|_| self.rest.try_recv()).ok()
    }
}

/// State shared by the handles, the connection loop, the reader and the writer.
pub(super) struct Shared {
    pub(super) config: ClientConfig,
    pub(super) connection: watch::Sender<Connection>,
    pub(super) delivery: Mutex<Delivery>,
    /// Free space for outgoing messages, in KiB.
    pub(super) room: Arc<Semaphore>,
    /// Number of answers accepted and not yet written to the socket.
    pub(super) unwritten: AtomicUsize,
    pub(super) all_written: Notify,
    pub(super) counters: Mutex<ClientCounters>,
    /// Tells the writer to send a ping.
    pub(super) ping: Notify,
    /// When data was last read from the bus.
    pub(super) last_received: Mutex<Instant>,
}

impl Shared {
    pub(super) fn delivery<R>(&self, with: impl FnOnce(&mut Delivery) -> R) -> R {
        // A mutex of parking_lot is not poisoned; a panic inside `with` leaves `Delivery` usable.
        with(&mut self.delivery.lock())
    }

    pub(super) fn last_heard(&self) -> MutexGuard<'_, Instant> {
        self.last_received.lock()
    }

    pub(super) fn add_unwritten(&self, answers: usize) {
        self.unwritten.fetch_add(answers, Ordering::AcqRel);
    }

    pub(super) fn remove_unwritten(&self, answers: usize) {
        if answers > 0 && self.unwritten.fetch_sub(answers, Ordering::AcqRel) == answers {
            self.all_written.notify_waiters();
        }
    }
}

/// A message queued for the writer.
pub(super) struct Outgoing {
    pub(super) text: Utf8Bytes,
    pub(super) kind: OutgoingKind,
    /// The reserved space, released when this value is dropped; none for an urgent message.
    pub(super) _room: Option<OwnedSemaphorePermit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutgoingKind {
    /// Kept until its echo arrives.
    Answer,
    /// As `Answer`; the embedded bus relays it before other frames.
    UrgentAnswer,
    /// Dropped unless it is written on the connection with this number.
    Notice { connection: u64 },
}
