//! Routes frames from the bus by their type.
//!
//! This runs on the task that reads the bus, so it never waits. Stops go to a task of their own, requests to the
//! [`RequestServer`], messages for toolboxes to the toolboxes. Only of a request that may call a tool with effect
//! `stop`, more than the type is read. Read [`Router::frame`].

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use arc_swap::ArcSwap;
use bus::Utf8Bytes;
use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::deliveries::{Deliveries, deliver};
use super::doors::Doors;
use super::requests::{
    LARGE_FRAME_BYTES, ParsedRequest, QueuedRequest, RequestServer, parse, refuse_surplus, serve_requests,
};
use crate::api::{self, Api, Request, Topic, Urgent};
use bus::{BusHandler, Envelope};
use engine::StopTarget;

/// How many stops may be queued. Each takes microseconds to serve; if a flood exceeds that, one stop of everything
/// replaces all that did not fit.
const STOPS: usize = 1024;

/// How many large messages for toolboxes are parsed at a time; further ones are dropped. Each takes a thread of the pool for blocking
/// work, and its text, at most the largest frame of the bus, and what is parsed of it are in memory meanwhile.
const LARGE_MESSAGES: usize = 4;

/// Routes frames.
pub(super) struct Router {
    deliveries: Arc<dyn Deliveries>,
    api: Arc<Api>,
    doors: Arc<Doors>,
    requests: mpsc::Sender<QueuedRequest>,
    /// Requests that did not fit into `requests`; they are answered with a `BusyError`.
    surplus: mpsc::Sender<QueuedRequest>,
    stops: mpsc::Sender<Stop>,
    /// Stops that were taken where the embedded bus read them, and arrive again over the bus.
    early: Mutex<VecDeque<Utf8Bytes>>,
    overflow: Arc<Overflow>,
    /// Tracks requests that are not answered yet, and stops whose toolboxes have not confirmed yet.
    unanswered: TaskTracker,
    shutdown: CancellationToken,
    answer_as_phal: bool,
    /// Topics that toolboxes subscribed to or await answers on.
    topics: ArcSwap<std::collections::HashSet<String>>,
    turned_away: AtomicU64,
    dropped: AtomicU64,
    /// Bounds how many large messages for toolboxes are parsed at the same time.
    large: Arc<Semaphore>,
}

/// A stop request, unparsed.
struct Stop {
    what: What,
    text: Utf8Bytes,
    received: Instant,
    /// When its frame was read, in nanoseconds of CLOCK_MONOTONIC: comparable across processes with the time a
    /// toolbox records when its `halt` is entered.
    read_ns: u64,
}

/// How a stop was requested.
enum What {
    Urgent(Urgent),
    /// By a call of a tool with effect `stop`.
    Tool(Topic),
}

/// Signals that stops did not fit into the queue.
#[derive(Default)]
struct Overflow {
    happened: AtomicBool,
    wake: Notify,
}

impl Router {
    /// Starts the router. Its tasks for stops and requests belong to `tracker`; those for stops run on `stop_thread`.
    pub(super) fn start(
        api: Arc<Api>,
        deliveries: Arc<dyn Deliveries>,
        tracker: TaskTracker,
        shutdown: CancellationToken,
        max_calls: usize,
        answer_as_phal: bool,
        stop_thread: &Handle,
    ) -> Arc<Self> {
        let (stops, queue) = mpsc::channel(STOPS);
        let overflow = Arc::new(Overflow::default());
        let unanswered = TaskTracker::new();
        let serving = serve_stops(
            api.clone(),
            queue,
            overflow.clone(),
            unanswered.clone(),
            shutdown.clone(),
        );
        tracker.spawn_on(serving, stop_thread);
        // The queue holds as many requests as may be in progress; beyond that the service is flooded.
        let bound = max_calls.saturating_mul(4).max(64);
        let (requests, arrivals) = mpsc::channel(bound);
        let (surplus, refused) = mpsc::channel(bound);
        let server = Arc::new(RequestServer {
            api: api.clone(),
            deliveries: deliveries.clone(),
            shutdown: shutdown.clone(),
            answer_as_phal,
            permits: Arc::new(Semaphore::new(bound)),
        });
        tracker.spawn(refuse_surplus(server.clone(), refused));
        tracker.spawn(serve_requests(server, arrivals, unanswered.clone()));
        Arc::new(Self {
            deliveries,
            api,
            doors: Arc::default(),
            requests,
            surplus,
            stops,
            early: Mutex::default(),
            overflow,
            unanswered,
            shutdown,
            answer_as_phal,
            topics: ArcSwap::default(),
            turned_away: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            large: Arc::new(Semaphore::new(LARGE_MESSAGES)),
        })
    }

    /// The doors that were heard.
    pub(super) fn doors(&self) -> Arc<Doors> {
        self.doors.clone()
    }

    /// Sets the topics to pass on to toolboxes.
    pub(super) fn listen_to(&self, topics: std::collections::HashSet<String>) {
        self.topics.store(Arc::new(topics));
    }

    /// How many requests were answered with a `BusyError` because the queue of requests was full.
    pub(super) fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    /// How many requests were dropped because the queue for the `BusyError` answers was full, too.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until every accepted request has been answered.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn wait_until_answered(&self) {
        // A closed tracker still accepts tasks; closing only lets the wait end when there are none.
        self.unanswered.close();
        self.unanswered.wait().await;
    }

    /// Takes an emergency stop where the embedded bus of this process reads it; false for other messages. Only emergency stops:
    /// they latch, so that what they overtook does not move anything when it arrives. The user's stop ends what came before
    /// it, and would not end what it overtook.
    pub(super) fn takes_early(&self, text: &Utf8Bytes) -> bool {
        if text.len() > LARGE_FRAME_BYTES {
            return false;
        }
        let Some(kind) = Envelope::kind_of(text) else {
            return false;
        };
        let what = match Urgent::of(&kind) {
            Some(Urgent::EmergencyStop) => What::Urgent(Urgent::EmergencyStop),
            Some(Urgent::UserStop) => return false,
            None => match Topic::of(&kind, self.answer_as_phal) {
                Some(topic) if self.api.calls_stop(&topic, text) => What::Tool(topic),
                _ => return false,
            },
        };
        // One that does not fit into the queue stops everything now, and is looked at again when it arrives.
        if self.stop(what, text.clone()) {
            let mut early = self.early.lock();
            if early.len() >= STOPS {
                early.pop_front();
            }
            early.push_back(text.clone());
        }
        true
    }

    /// Whether a stop was taken before it arrived over the bus. Each is so once.
    fn was_taken(&self, text: &Utf8Bytes) -> bool {
        let mut early = self.early.lock();
        let taken = early.iter().position(|taken| taken == text);
        taken.is_some_and(|at| early.remove(at).is_some())
    }

    /// Queues a stop. False if the queue is full: then everything is stopped, and the stop task does not answer this
    /// one.
    fn stop(&self, what: What, text: Utf8Bytes) -> bool {
        let stop = Stop {
            what,
            text,
            received: Instant::now(),
            read_ns: monotonic_ns(),
        };
        let taken = self.stops.try_send(stop).is_ok();
        if !taken {
            self.overflow.happened.store(true, Ordering::Release);
            self.overflow.wake.notify_one();
        }
        taken
    }

    /// Passes a message on if a toolbox listens to its topic.
    fn pass_on(&self, kind: &str, text: Utf8Bytes) {
        if !self.topics.load().contains(kind) {
            return;
        }
        if text.len() <= LARGE_FRAME_BYTES {
            deliver(&*self.deliveries, &text);
        } else if let Ok(permit) = self.large.clone().try_acquire_owned() {
            let deliveries = self.deliveries.clone();
            self.unanswered.spawn_blocking(move || {
                deliver(&*deliveries, &text);
                drop(permit);
            });
        } else {
            tracing::warn!(%kind, bytes = text.len(), "dropped a large message for a toolbox; others are being read");
        }
    }

    fn request(&self, topic: Topic, text: Utf8Bytes) {
        let queued = QueuedRequest {
            topic,
            text,
            received: Instant::now(),
            unanswered: self.unanswered.token(),
        };
        let Err(full) = self.requests.try_send(queued) else {
            return;
        };
        if self.surplus.try_send(full.into_inner()).is_ok() {
            self.turned_away.fetch_add(1, Ordering::Relaxed);
        } else {
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::error!(dropped, "too many requests are in progress; one was dropped");
        }
    }
}

impl BusHandler for Router {
    fn frame(&self, text: Utf8Bytes) {
        let Some(kind) = Envelope::kind_of(&text) else {
            tracing::debug!(bytes = text.len(), "dropped a frame that is not a message");
            return;
        };
        if let Some(urgent) = Urgent::of(&kind) {
            if !self.was_taken(&text) {
                self.stop(What::Urgent(urgent), text.clone());
            }
            // Toolboxes may subscribe to the user's stop, for work that continues after its call has ended; they
            // receive it after the stop itself.
            if urgent == Urgent::UserStop {
                self.pass_on(&kind, text.clone());
            }
        } else if Doors::says(&kind) {
            self.doors.hear(&text);
        } else if let Some(topic) = Topic::of(&kind, self.answer_as_phal) {
            let stops = self.api.calls_stop(&topic, &text);
            if stops && self.was_taken(&text) {
                return;
            }
            if !(stops && self.stop(What::Tool(topic.clone()), text.clone())) {
                self.request(topic, text.clone());
            }
        } else {
            self.pass_on(&kind, text.clone());
        }
    }

    fn connected(&self) {}

    fn disconnected(&self, reason: &str) {
        // The embedded bus closes with the service; that is expected.
        if self.shutdown.is_cancelled() {
            tracing::debug!(reason, "disconnected from the bus");
        } else {
            tracing::warn!(reason, "disconnected from the bus");
        }
    }

    fn instead(&self, answer: &str, reason: &str) -> Option<String> {
        api::instead(answer, reason)
    }
}

async fn serve_stops(
    api: Arc<Api>,
    mut queue: mpsc::Receiver<Stop>,
    overflow: Arc<Overflow>,
    unanswered: TaskTracker,
    shutdown: CancellationToken,
) {
    loop {
        tokio::select! {
            biased;
            () = overflow.wake.notified() => {
                if overflow.happened.swap(false, Ordering::AcqRel) {
                    api.stop(&StopTarget::All, "a flood of stop requests").await;
                }
            }
            stop = queue.recv() => match stop {
                Some(Stop { what, text, received, read_ns }) => {
                    // One poll is enough for latch, cancel and halt. The confirmation and the answer are awaited in
                    // another task, so that the next stop does not wait for these toolboxes.
                    let api = api.clone();
                    let served = async move {
                        match what {
                            What::Urgent(urgent) => api.urgent(urgent, &text, received).await,
                            What::Tool(topic) => {
                                // Unusable arguments do not keep a stop from being served.
                                if let Some(ParsedRequest { head, data, .. }) = parse(&text) {
                                    api.handle(topic, Request::of_stop(head, data, received)).await;
                                }
                            }
                        }
                    };
                    // A panic here does not keep the next stop from being served.
                    let mut served = Box::pin(AssertUnwindSafe(served).catch_unwind().map(|served| {
                        if served.is_err() {
                            tracing::error!("bug in the service: a stop was not answered");
                        }
                    }));
                    if futures_util::poll!(&mut served).is_pending() {
                        unanswered.spawn(served);
                    }
                    tracing::info!(read_ns, "a stop was served");
                }
                None => return,
            },
            () = shutdown.cancelled() => return,
        }
    }
}

fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // CLOCK_MONOTONIC counts from the start of the machine: neither part is negative or near the end of its range.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
