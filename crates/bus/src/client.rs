//! The connection to the messagebus, and everything that has to outlive it.
//!
//! [`BusClient`] connects, reconnects, reads frames into a [`BusHandler`] and writes messages. Answers wait
//! for room and survive a loss of the connection, in order; progress and events are dropped when there is no
//! room or no bus. It looks into no message. `link` is one connection, `delivery` knows what has arrived,
//! `dial` is one attempt to connect; [`Caller`] is the small client of the command line.

mod backoff;
mod caller;
mod delivery;
mod dial;
mod link;
#[cfg(test)]
mod outage_tests;
mod resend;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tungstenite::Utf8Bytes;
use url::Url;

pub use self::caller::{CallError, Caller};
pub use self::dial::DialError;

use self::backoff::Backoff;
use self::delivery::{Delivery, Limits, Unproven};
use self::dial::{Dial, Dialer};
use super::message::Message;

/// Bytes of answers that may wait to be written, all together; and of those that are written and not yet seen to arrive.
const ANSWER_BYTES: usize = 64 << 20;

/// Answers that are written and not yet seen to arrive; past it the oldest is given up.
const UNPROVEN_ANSWERS: usize = 4096;

/// How often a bus that stays away is told of as a warning.
const REMINDER: Duration = Duration::from_secs(60);

/// How to reach the bus, and the bounds of what is kept for it.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// `ws://host:port/route`, or `wss`.
    pub url: Url,
    /// Wait before the first attempt to reconnect; doubles up to `max_retry`.
    pub first_retry: Duration,
    /// Longest wait between two attempts.
    pub max_retry: Duration,
    /// Frames of more bytes are dropped when they come in, and refused when they are to go out: the bus would
    /// hang up.
    pub drop_above: usize,
    /// Frames of more bytes end the connection; at least `drop_above`.
    pub message_limit: usize,
    /// Messages that may wait to be written: as many as there may be calls in flight.
    pub answer_queue: usize,
    /// A PEM file of certificates to trust beside the machine's own.
    pub extra_ca: Option<PathBuf>,
}

impl ClientConfig {
    /// The defaults for a bus at this address: retries after 200 ms doubling to 500 ms, frames up to 25 MiB, a
    /// queue of 4096.
    pub fn new(url: Url) -> Self {
        Self {
            url,
            first_retry: Duration::from_millis(200),
            max_retry: Duration::from_millis(500),
            drop_above: 25 << 20,
            message_limit: 64 << 20,
            answer_queue: 4096,
            extra_ca: None,
        }
    }
}

/// What the client calls. It runs on the reader, or the writer, and holds up everything behind it: it must not block,
/// and `frame` had better only look at the type and pass the frame on.
pub trait BusHandler: Send + Sync + 'static {
    /// A text frame came, our own included: the bus relays to everybody.
    fn frame(&self, text: Utf8Bytes);
    /// The bus is there.
    fn connected(&self);
    /// The bus is gone. No frame comes until [`connected`](Self::connected) is called again.
    fn disconnected(&self, reason: &str);
    /// A frame to send in place of an answer that cannot be sent: the same topic in the same context, with `reason` as
    /// its error. None if that is no answer.
    fn instead(&self, answer: &str, reason: &str) -> Option<String>;
}

/// Whether the bus is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// Connected since then.
    Up {
        /// The end of the handshake.
        since: Instant,
    },
    /// Not connected.
    Away {
        /// When the connection was lost, or the client started.
        since: Instant,
    },
}

impl Connection {
    /// Whether the bus is there.
    pub fn is_up(&self) -> bool {
        matches!(self, Connection::Up { .. })
    }
}

/// An answer that will not be sent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The bus would hang up on it.
    #[error("message of {size} bytes is too big for the bus, {limit} are accepted")]
    TooBig {
        /// Bytes of the frame.
        size: usize,
        /// Bytes accepted.
        limit: usize,
    },
    /// The client was shut down.
    #[error("the bus client is shut down")]
    Closed,
}

/// What has happened since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientCounters {
    /// Connections made.
    pub connections: u64,
    /// Progress and events not sent for want of room or of a bus.
    pub notices_dropped: u64,
    /// Times an answer was written again after a loss.
    pub answers_resent: u64,
    /// Answers that were never seen to arrive and are not tried again: past the bounds, or written too often.
    pub answers_given_up: u64,
    /// Frames dropped for their size or because they were not UTF-8.
    pub frames_dropped: u64,
}

/// A handle to the connection; clones share it.
#[derive(Clone)]
pub struct BusClient {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Outgoing>,
}

/// What the handles, the connection loop, the reader and the writer share.
struct Shared {
    config: ClientConfig,
    connection: watch::Sender<Connection>,
    delivery: Mutex<Delivery>,
    /// Kibibytes of answers that may still be taken in.
    room: Arc<Semaphore>,
    /// Answers taken in and not yet with the kernel.
    unwritten: AtomicUsize,
    all_written: Notify,
    connections: AtomicU64,
    notices_dropped: AtomicU64,
    answers_resent: AtomicU64,
    answers_given_up: AtomicU64,
    frames_dropped: AtomicU64,
    /// Wakes the writer for a ping.
    ping: Notify,
    /// When something was read from the bus.
    heard: Mutex<Instant>,
}

/// A message on its way to the writer.
struct Outgoing {
    text: Utf8Bytes,
    kind: OutgoingKind,
    /// Given back when the message is written.
    _room: OwnedSemaphorePermit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutgoingKind {
    /// Kept until it is seen to arrive.
    Answer,
    /// Worth nothing after the connection (by number) it was meant for.
    Notice { connection: u64 },
}

impl BusClient {
    /// Starts to connect in the background, on a task of `tracker` that ends with `shutdown`.
    pub fn start(
        config: ClientConfig,
        handler: Arc<dyn BusHandler>,
        tracker: &TaskTracker,
        shutdown: CancellationToken,
    ) -> BusClient {
        let dialer = Dialer::new(config.url.clone(), config.extra_ca.clone());
        Self::start_on(dialer, config, handler, tracker, shutdown)
    }

    /// As [`start`](Self::start), over connections of this dialer. All waits are tokio's, so a test that pauses its clock
    /// decides the client's.
    fn start_on(
        dialer: impl Dial,
        config: ClientConfig,
        handler: Arc<dyn BusHandler>,
        tracker: &TaskTracker,
        shutdown: CancellationToken,
    ) -> BusClient {
        // Bounded like the calls in flight: every one of them may owe an answer while the bus is away.
        let (queue, outgoing) = mpsc::channel(config.answer_queue.max(2));
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
            connections: AtomicU64::new(0),
            notices_dropped: AtomicU64::new(0),
            answers_resent: AtomicU64::new(0),
            answers_given_up: AtomicU64::new(0),
            frames_dropped: AtomicU64::new(0),
            ping: Notify::new(),
            heard: Mutex::new(Instant::now()),
            config,
        });
        let run = run(
            dialer,
            Arc::clone(&shared),
            handler,
            outgoing,
            tracker.clone(),
            shutdown,
        );
        tracker.spawn(run);
        BusClient { shared, queue }
    }

    /// Sends a message that must arrive. Waits for room in the queue, not for the bus: while the bus is away
    /// the message is kept, and sent after the reconnect, in order. When the connection broke before its echo came it is
    /// sent again, with `ovos_tools: {"call_id", "resent"}` in its context; three times in all, then an error goes in its
    /// place. On a bus that never [echoed](Self::echoes) nothing that was wholly written is sent again.
    ///
    /// # Errors
    /// [`AnswerError::TooBig`]: send a shorter one. [`AnswerError::Closed`] after the shutdown.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, the message is not sent.
    pub async fn answer(&self, message: &Message) -> Result<(), AnswerError> {
        self.answer_text(message.to_text()).await
    }

    /// As [`answer`](Self::answer), for a message that is written as a frame already.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    ///
    /// # Cancel safety
    /// Dropped before it is ready, the message is not sent.
    pub async fn answer_text(&self, text: String) -> Result<(), AnswerError> {
        let (text, size) = self.measure(text)?;
        let debt = Debt::new(&self.shared);
        let room = Arc::clone(&self.shared.room).acquire_many_owned(size).await;
        let room = room.map_err(|_| AnswerError::Closed)?;
        let slot = self.queue.reserve().await.map_err(|_| AnswerError::Closed)?;
        slot.send(Outgoing {
            text,
            kind: OutgoingKind::Answer,
            _room: room,
        });
        debt.hand_over();
        Ok(())
    }

    /// Sends a message that may get lost: progress, an event. Never waits; false when it was dropped, because
    /// the bus is away or the queue is half full (the other half is kept for answers).
    pub fn notify(&self, message: &Message) -> bool {
        self.notify_text(message.to_text())
    }

    /// As [`notify`](Self::notify), for a message that is written as a frame already.
    pub fn notify_text(&self, text: String) -> bool {
        let sent = self.connection_now().is_up()
            && self.queue.capacity() > self.queue.max_capacity() / 2
            && self.measure(text).is_ok_and(|(text, size)| {
                Arc::clone(&self.shared.room)
                    .try_acquire_many_owned(size)
                    .is_ok_and(|room| {
                        let connection = self.shared.connections.load(Ordering::Acquire);
                        let kind = OutgoingKind::Notice { connection };
                        self.queue
                            .try_send(Outgoing {
                                text,
                                kind,
                                _room: room,
                            })
                            .is_ok()
                    })
            });
        if !sent {
            self.shared.notices_dropped.fetch_add(1, Ordering::Relaxed);
        }
        sent
    }

    /// Whether the bus is there, and every change of it.
    pub fn connection(&self) -> watch::Receiver<Connection> {
        self.shared.connection.subscribe()
    }

    /// Whether the bus is there now.
    pub fn connection_now(&self) -> Connection {
        *self.shared.connection.borrow()
    }

    /// Asks the bus for a sign of life. Never waits; nothing comes of it while the bus is away.
    pub fn ping(&self) {
        self.shared.ping.notify_one();
    }

    /// When something was last read from the bus.
    pub fn heard(&self) -> Instant {
        *self.shared.heard()
    }

    /// Whether the bus was ever seen to relay an answer back to us. Without that it cannot be known what arrives.
    pub fn echoes(&self) -> bool {
        self.shared.delivery(|delivery| delivery.echoes())
    }

    /// Waits until every answer taken in has been written, also those that wait for the bus to come back.
    /// False if some were not by the deadline. Call it before the shutdown.
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

    /// What has happened since the start.
    pub fn counters(&self) -> ClientCounters {
        let shared = &self.shared;
        ClientCounters {
            connections: shared.connections.load(Ordering::Relaxed),
            notices_dropped: shared.notices_dropped.load(Ordering::Relaxed),
            answers_resent: shared.answers_resent.load(Ordering::Relaxed),
            answers_given_up: shared.answers_given_up.load(Ordering::Relaxed),
            frames_dropped: shared.frames_dropped.load(Ordering::Relaxed),
        }
    }

    /// The frame, and what it takes of the room, in KiB.
    fn measure(&self, text: String) -> Result<(Utf8Bytes, u32), AnswerError> {
        let (size, limit) = (text.len(), self.shared.config.drop_above);
        if size > limit {
            return Err(AnswerError::TooBig { size, limit });
        }
        let kib = size.div_ceil(1 << 10).min(ANSWER_BYTES >> 10);
        Ok((text.into(), kib as u32))
    }
}

impl Shared {
    fn delivery<R>(&self, with: impl FnOnce(&mut Delivery) -> R) -> R {
        // A panic elsewhere cannot leave it half changed in a way that matters here.
        with(&mut self.delivery.lock())
    }

    fn heard(&self) -> MutexGuard<'_, Instant> {
        self.heard.lock()
    }

    fn owe(&self, answers: usize) {
        self.unwritten.fetch_add(answers, Ordering::AcqRel);
    }

    fn settle(&self, answers: usize) {
        if answers > 0 && self.unwritten.fetch_sub(answers, Ordering::AcqRel) == answers {
            self.all_written.notify_waiters();
        }
    }
}

/// An answer that was taken in but is not in the queue yet; forgiven when the caller goes away.
struct Debt<'a>(Option<&'a Shared>);

impl<'a> Debt<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.owe(1);
        Self(Some(shared))
    }

    /// The writer owes it from now on.
    fn hand_over(mut self) {
        self.0 = None;
    }
}

impl Drop for Debt<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.0 {
            shared.settle(1);
        }
    }
}

/// Connects again and again until the shutdown.
async fn run(
    mut dialer: impl Dial,
    shared: Arc<Shared>,
    handler: Arc<dyn BusHandler>,
    mut outgoing: mpsc::Receiver<Outgoing>,
    tracker: TaskTracker,
    shutdown: CancellationToken,
) {
    let config = &shared.config;
    let url = &config.url;
    let mut backoff = Backoff::new(config.first_retry, config.max_retry);
    let mut told: Option<(String, Instant)> = None;
    let mut again: VecDeque<Unproven> = VecDeque::new();
    loop {
        let dialled = tokio::select! {
            () = shutdown.cancelled() => break,
            dialled = dialer.dial() => dialled,
        };
        let reason = match dialled {
            Ok(line) => {
                let since = Instant::now();
                shared.connections.fetch_add(1, Ordering::AcqRel);
                shared.connection.send_replace(Connection::Up { since });
                tracing::info!(%url, "connected to the bus");
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
                // One that hangs up at once is not asked more often than one that is away.
                if now.duration_since(since) > config.max_retry {
                    backoff.reset();
                }
                shared.connection.send_replace(Connection::Away { since: now });
                let lost = shared.delivery(Delivery::lost);
                // In this order: a flush must not see nothing owed in between.
                shared.owe(lost.len());
                shared.settle(ended.unwritten);
                // Before those that were not written a first time.
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
        let is_new = told
            .as_ref()
            .is_none_or(|(last, at)| *last != reason || now.duration_since(*at) > REMINDER);
        if is_new {
            tracing::warn!(%url, reason, "the bus is away: connecting again until it is back");
            told = Some((reason, now));
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = sleep(wait) => {}
        }
    }
    outgoing.close();
    shared.room.close();
    let unsent = shared.unwritten.load(Ordering::Acquire);
    if unsent > 0 {
        tracing::warn!(%url, unsent, "shut down with answers that were not sent");
    }
}
