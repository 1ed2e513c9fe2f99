//! The connection to the messagebus, and the state that outlives a single connection.
//!
//! [`BusClient`] connects, reconnects, passes received frames to a [`BusHandler`] and writes messages. Answers wait
//! for room in the queue and survive a loss of the connection, in order; progress and events are dropped when the
//! queue has no room or the bus is away. The client interprets no message. `link` runs one connection, `delivery`
//! tracks which answers have arrived, `dial` makes one attempt to connect.

mod backoff;
mod config;
mod delivery;
mod dial;
mod handler;
mod link;
#[cfg(test)]
mod outage_tests;
mod resend;
mod shared;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tungstenite::Utf8Bytes;

pub use self::config::ClientConfig;
pub use self::dial::DialError;
pub use self::handler::BusHandler;
pub use self::shared::{ClientCounters, Connection};

use crate::shown::shown;

use self::backoff::Backoff;
use self::delivery::{Delivery, Limits, UnprovenAnswer};
use self::dial::{Dial, Dialer, Line};
use self::shared::{ANSWER_BYTES, Outgoing, OutgoingKind, Queues, Shared};

/// How many answers may be written and not yet echoed; beyond it the oldest is given up.
const UNPROVEN_ANSWERS: usize = 4096;

/// How many urgent answers may wait to be written.
const URGENT_ANSWERS: usize = 1024;

/// Interval between warnings while the bus stays away for the same reason.
const REMINDER: Duration = Duration::from_secs(60);

/// Why an answer cannot be sent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The frame is longer than the bus accepts; the bus would close the connection.
    #[error("the message is {size} bytes, over the bus limit of {limit} bytes")]
    TooBig {
        /// Size of the frame in bytes.
        size: usize,
        /// Largest accepted size in bytes.
        limit: usize,
    },
    /// The client was shut down.
    #[error("the bus client is shut down")]
    Closed,
}

/// A handle to the client; clones share one connection.
#[derive(Clone)]
pub struct BusClient {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Outgoing>,
    urgent: mpsc::Sender<Outgoing>,
}

impl BusClient {
    /// Starts the client on a task of `tracker` that ends with `shutdown`; it connects in the background.
    pub fn start(
        config: ClientConfig,
        handler: Arc<dyn BusHandler>,
        tracker: &TaskTracker,
        shutdown: CancellationToken,
    ) -> BusClient {
        let dialer = Dialer::new(&config);
        Self::start_on(dialer, None, config, handler, tracker, shutdown)
    }

    /// As [`start`](Self::start), for a client that is of no use without its first connection: makes one attempt, and
    /// returns when it is connected.
    ///
    /// # Errors
    /// Why the attempt failed. Nothing is started then.
    ///
    /// # Cancel safety
    /// If dropped, cancel `shutdown` too: the task may have been started.
    pub async fn connect(
        config: ClientConfig,
        handler: Arc<dyn BusHandler>,
        tracker: &TaskTracker,
        shutdown: CancellationToken,
    ) -> Result<BusClient, DialError> {
        let mut dialer = Dialer::new(&config);
        let first = dialer.dial().await?;
        let client = Self::start_on(dialer, Some(first), config, handler, tracker, shutdown);
        // The connection is open; this waits until the task has reported it.
        _ = client.connection().wait_for(Connection::is_up).await;
        Ok(client)
    }

    /// As [`start`](Self::start), with connections from `dialer` after `first`. All waits use tokio's clock, so a test
    /// that pauses it controls the client's timing.
    fn start_on(
        dialer: impl Dial,
        first: Option<Line>,
        config: ClientConfig,
        handler: Arc<dyn BusHandler>,
        tracker: &TaskTracker,
        shutdown: CancellationToken,
    ) -> BusClient {
        // Bounded by the number of calls in flight: each of them may have to queue an answer while the bus is away.
        let (queue, rest) = mpsc::channel(config.answer_queue.max(2));
        // Bounded as the queue of stops is: each of them has one answer.
        let (urgent, first_written) = mpsc::channel(URGENT_ANSWERS);
        let limits = Limits {
            answers: UNPROVEN_ANSWERS,
            bytes: ANSWER_BYTES,
        };
        let shared = Arc::new(Shared {
            connection: watch::Sender::new(Connection::Away {
                since: Instant::now(),
            }),
            delivery: Mutex::new(Delivery::new(limits)),
            room: Arc::new(Semaphore::new(ANSWER_BYTES >> 10)),
            unwritten: AtomicUsize::new(0),
            all_written: Notify::new(),
            counters: Mutex::default(),
            ping: Notify::new(),
            last_received: Mutex::new(Instant::now()),
            config,
        });
        let run = run(
            dialer,
            first,
            Arc::clone(&shared),
            handler,
            Queues {
                urgent: first_written,
                rest,
            },
            tracker.clone(),
            shutdown,
        );
        tracker.spawn(run);
        BusClient {
            shared,
            queue,
            urgent,
        }
    }

    /// Sends a message that must arrive. Waits for room in the queue, not for the bus: while the bus is away the
    /// message is kept and sent after the reconnect, in order. If the connection breaks before the echo arrives, the
    /// message is sent again with `ovos_tools: {"call_id", "resent"}` in its context; after three writes in all an
    /// error takes its place. On a bus that never [echoed](Self::echoes), a message that was completely written is
    /// not sent again.
    ///
    /// # Errors
    /// [`AnswerError::TooBig`]: send a shorter message. [`AnswerError::Closed`] after the shutdown.
    ///
    /// # Cancel safety
    /// If dropped before it is ready, the message is not sent.
    pub async fn answer(&self, text: String) -> Result<(), AnswerError> {
        let (text, size) = self.measure(text)?;
        let unqueued = UnqueuedAnswer::new(&self.shared);
        let room = Arc::clone(&self.shared.room).acquire_many_owned(size).await;
        let room = room.map_err(|_| AnswerError::Closed)?;
        let slot = self.queue.reserve().await.map_err(|_| AnswerError::Closed)?;
        slot.send(Outgoing {
            text,
            kind: OutgoingKind::Answer,
            _room: Some(room),
        });
        unqueued.queued();
        Ok(())
    }

    /// As [`answer`](Self::answer), for a short message that must not wait for others, such as the answer to a stop: it is
    /// written before everything that is queued, between whole frames, and an embedded bus of this process relays it in
    /// the same way.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    ///
    /// # Cancel safety
    /// As [`answer`](Self::answer).
    pub async fn answer_urgent(&self, text: String) -> Result<(), AnswerError> {
        let (text, _) = self.measure(text)?;
        let unqueued = UnqueuedAnswer::new(&self.shared);
        let slot = self.urgent.reserve().await.map_err(|_| AnswerError::Closed)?;
        slot.send(Outgoing {
            text,
            kind: OutgoingKind::UrgentAnswer,
            _room: None,
        });
        unqueued.queued();
        Ok(())
    }

    /// Sends a message that may be lost: progress, an event. Never waits. Returns false if the message was dropped,
    /// because it is too long, the bus is away, the space for bytes is used up, or the queue is half full (the other
    /// half is kept for answers).
    pub fn notify(&self, text: String) -> bool {
        let sent = self.try_notify(text).is_some();
        if !sent {
            self.shared.counters.lock().notices_dropped += 1;
        }
        sent
    }

    fn try_notify(&self, text: String) -> Option<()> {
        let half = self.queue.max_capacity() / 2;
        if !self.connection_now().is_up() || self.queue.capacity() <= half {
            return None;
        }
        let (text, size) = self.measure(text).ok()?;
        let room = Arc::clone(&self.shared.room).try_acquire_many_owned(size);
        let connection = self.shared.counters.lock().connections;
        let message = Outgoing {
            text,
            kind: OutgoingKind::Notice { connection },
            _room: Some(room.ok()?),
        };
        self.queue.try_send(message).ok()
    }

    /// Watches the state of the connection.
    pub fn connection(&self) -> watch::Receiver<Connection> {
        self.shared.connection.subscribe()
    }

    /// The present state of the connection.
    pub fn connection_now(&self) -> Connection {
        *self.shared.connection.borrow()
    }

    /// Sends a ping to the bus. Never waits. A ping requested while the bus is away is sent after the reconnect.
    pub fn ping(&self) {
        self.shared.ping.notify_one();
    }

    /// When data was last read from the bus; before the first read, the start of the client.
    pub fn last_heard(&self) -> Instant {
        *self.shared.last_heard()
    }

    /// Whether the bus ever relayed an answer of this client back to it. Without an echo the client cannot tell which
    /// answers arrived.
    pub fn echoes(&self) -> bool {
        self.shared.delivery(|delivery| delivery.echoes())
    }

    /// Waits until all accepted answers are written, including those that wait for a reconnect. Returns false if the
    /// deadline passes first. Call it before the shutdown.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn flush(&self, deadline: Instant) -> bool {
        loop {
            let written = self.shared.all_written.notified();
            if self.shared.unwritten.load(Ordering::Acquire) == 0 {
                return true;
            }
            if timeout_at(deadline, written).await.is_err() {
                return false;
            }
        }
    }

    /// Counters since the start of the client.
    pub fn counters(&self) -> ClientCounters {
        *self.shared.counters.lock()
    }

    /// Returns the frame and the space it takes, in KiB.
    fn measure(&self, text: String) -> Result<(Utf8Bytes, u32), AnswerError> {
        let (size, limit) = (text.len(), self.shared.config.drop_above);
        if size > limit {
            return Err(AnswerError::TooBig { size, limit });
        }
        let kib = size.div_ceil(1 << 10).min(ANSWER_BYTES >> 10);
        Ok((text.into(), kib as u32))
    }
}

/// An answer that counts as unwritten and is not in the queue yet. If it is dropped before it is queued, as when the
/// caller is cancelled, it no longer counts.
struct UnqueuedAnswer<'a>(Option<&'a Shared>);

impl<'a> UnqueuedAnswer<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.add_unwritten(1);
        Self(Some(shared))
    }

    /// The answer is in the queue: it counts until the writer has written it.
    fn queued(mut self) {
        self.0 = None;
    }
}

impl Drop for UnqueuedAnswer<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.0 {
            shared.remove_unwritten(1);
        }
    }
}

/// Connects and reconnects until the shutdown.
async fn run(
    mut dialer: impl Dial,
    mut first: Option<Line>,
    shared: Arc<Shared>,
    handler: Arc<dyn BusHandler>,
    mut outgoing: Queues,
    tracker: TaskTracker,
    shutdown: CancellationToken,
) {
    let config = &shared.config;
    let url = &config.url;
    let mut backoff = Backoff::new(config.first_retry, config.max_retry);
    let mut last_warning: Option<(String, Instant)> = None;
    let mut again: VecDeque<UnprovenAnswer> = VecDeque::new();
    loop {
        let dialled = match first.take() {
            Some(line) => Ok(line),
            None => tokio::select! {
                () = shutdown.cancelled() => break,
                dialled = dialer.dial() => dialled,
            },
        };
        let reason = match dialled {
            Ok(line) => {
                let since = Instant::now();
                shared.counters.lock().connections += 1;
                shared.connection.send_replace(Connection::Up { since });
                tracing::info!(url = shown(url), "connected to the bus");
                handler.connected();
                let held = link::hold(
                    &shared,
                    &handler,
                    line,
                    &mut outgoing,
                    &mut again,
                    &tracker,
                    &shutdown,
                );
                let ended = held.await;
                let now = Instant::now();
                // A bus that accepts and closes at once is not dialled more often than an absent one.
                if now.duration_since(since) > config.max_retry {
                    backoff.reset();
                }
                shared.connection.send_replace(Connection::Away { since: now });
                if let Some(own) = &config.own {
                    own.lost();
                }
                let lost = shared.delivery(Delivery::lost);
                // In this order, so that a concurrent flush never sees a count of zero in between.
                shared.add_unwritten(lost.len());
                shared.remove_unwritten(ended.unwritten);
                // In front of the answers that were not resent on this connection: those are newer.
                lost.into_iter().rev().for_each(|answer| again.push_front(answer));
                handler.disconnected(&ended.reason);
                ended.reason
            }
            Err(error) => error.to_string(),
        };
        if shutdown.is_cancelled() {
            break;
        }
        let wait = backoff.wait(fastrand::f64());
        let now = Instant::now();
        let is_new = last_warning
            .as_ref()
            .is_none_or(|(last, at)| *last != reason || now.duration_since(*at) > REMINDER);
        if is_new {
            tracing::warn!(
                url = shown(url),
                reason,
                "no connection to the bus; trying again until there is one"
            );
            last_warning = Some((reason, now));
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = sleep(wait) => {}
        }
    }
    outgoing.rest.close();
    outgoing.urgent.close();
    shared.room.close();
    let unsent = shared.unwritten.load(Ordering::Acquire);
    if unsent > 0 {
        tracing::warn!(url = shown(url), unsent, "shut down with unsent answers");
    }
}
