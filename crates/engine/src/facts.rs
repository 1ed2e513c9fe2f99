//! Facts: the steps of calls and of the service, each made once, at the place where it happens.
//!
//! [`Facts`] numbers them on one bounded stream. A [`Follower`] reads it at its own pace: one that falls behind is told
//! which facts it lost, and delays nothing. [`CallFacts`] makes the facts of one call, and passes its progress to a
//! queue of the call's own. Without a follower a fact is not even built. Stops and resumes have a stream of their own beside the
//! numbered one, for a follower that is always there and wants no other facts.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use ovos_toolbox_wire::Effect;
use parking_lot::Mutex;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, mpsc};

use super::fact::{Answer, Call, Fact, NumberedFact, RequestOrigin, Step};
use super::latch::StopRecord;

/// How many facts a follower may be behind.
pub const BEHIND: usize = 4096;

/// How many stops and resumes their follower may be behind. Each stop is one fact, whatever the number of toolboxes.
const STOPS: usize = 256;

/// How many steps the queue of a call holds; further ones are dropped until there is room. Updates leave half of it to
/// the other steps.
const STEPS: usize = 2048;

/// The number of things that happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that were received.
    pub calls: u64,
    /// Calls that were answered with an error.
    pub failed_calls: u64,
    /// Emergency stops that a client, a signal or the service asked for.
    pub stops: u64,
}

/// Makes facts. Clones share one stream.
#[derive(Clone, Debug)]
pub struct Facts(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    begun: tokio::time::Instant,
    /// What the wall clock said at `begun`.
    begun_at: SystemTime,
    /// The number of the last fact. Held while a fact is sent, so that the stream is in the order of the numbers.
    last: Mutex<u64>,
    stream: broadcast::Sender<NumberedFact>,
    /// Only [`Fact::Stopped`] and [`Fact::Resumed`].
    stops_and_resumes: broadcast::Sender<Arc<Fact>>,
    calls: AtomicU64,
    failed_calls: AtomicU64,
    stops: AtomicU64,
}

impl Default for Facts {
    fn default() -> Self {
        Self(Arc::new(Shared {
            begun: tokio::time::Instant::now(),
            begun_at: SystemTime::now(),
            last: Mutex::default(),
            stream: broadcast::Sender::new(BEHIND),
            stops_and_resumes: broadcast::Sender::new(STOPS),
            calls: AtomicU64::new(0),
            failed_calls: AtomicU64::new(0),
            stops: AtomicU64::new(0),
        }))
    }
}

impl Facts {
    /// Follows the facts that are made from now on.
    #[must_use]
    pub fn follow(&self) -> Follower {
        let last = self.0.last.lock();
        Follower {
            stream: self.0.stream.subscribe(),
            next: *last + 1,
        }
    }

    /// Gives the next fact the number after `number`, unless a later one was given: the facts of an earlier run of the
    /// service have those up to it.
    pub fn continue_after(&self, number: u64) {
        let mut last = self.0.last.lock();
        *last = number.max(*last);
    }

    /// What the wall clock said when the times of the facts were zero.
    #[must_use]
    pub fn begun_at(&self) -> SystemTime {
        self.0.begun_at
    }

    /// The number of the last fact; 0 if there was none.
    #[must_use]
    pub fn last(&self) -> u64 {
        *self.0.last.lock()
    }

    /// Follows the stops and resumes that happen from now on.
    #[must_use]
    pub fn follow_stops(&self) -> StopFollower {
        StopFollower(self.0.stops_and_resumes.subscribe())
    }

    /// The counts since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            calls: self.0.calls.load(Ordering::Relaxed),
            failed_calls: self.0.failed_calls.load(Ordering::Relaxed),
            stops: self.0.stops.load(Ordering::Relaxed),
        }
    }

    /// Makes the fact that a call was received. The result makes the further facts of this call.
    pub fn received(
        &self,
        call_id: &str,
        toolbox_id: &str,
        tool: &str,
        effect: Effect,
        asked: Arc<RequestOrigin>,
    ) -> CallFacts {
        let call = Arc::new(Call {
            number: self.0.calls.fetch_add(1, Ordering::Relaxed) + 1,
            call_id: call_id.to_owned(),
            toolbox_id: toolbox_id.to_owned(),
            tool: tool.to_owned(),
            effect,
        });
        let received = call.clone();
        self.make(|| Fact::Received {
            call: received,
            asked,
        });
        CallFacts {
            facts: self.clone(),
            call,
            own: None,
        }
    }

    /// Makes the fact that a request was answered; `call` is the call that the request made.
    pub fn answered(&self, call: Option<&CallFacts>, asked: Arc<RequestOrigin>, answer: Answer) {
        if call.is_some() && !answer.ok {
            self.0.failed_calls.fetch_add(1, Ordering::Relaxed);
        }
        self.make(|| Fact::Answered {
            call: call.map(|facts| facts.call.clone()),
            asked: call.is_none().then_some(asked),
            answer,
        });
    }

    pub(crate) fn stopped<'a>(
        &self,
        stop: &StopRecord,
        toolboxes: impl Iterator<Item = &'a String>,
        itself: bool,
    ) {
        if !itself {
            self.0.stops.fetch_add(1, Ordering::Relaxed);
        }
        self.make_of_stop(|| Fact::Stopped {
            stop_id: stop.stop_id.clone(),
            reason: stop.reason.clone(),
            toolboxes: toolboxes.cloned().collect(),
            itself,
        });
    }

    pub(crate) fn resumed(&self, toolbox_id: &str, stop_id: &str, by: &str) {
        self.make_of_stop(|| Fact::Resumed {
            toolbox_id: toolbox_id.to_owned(),
            stop_id: stop_id.to_owned(),
            by: by.to_owned(),
        });
    }

    /// Makes a fact about a stop, if there is a follower of either stream.
    fn make_of_stop(&self, fact: impl FnOnce() -> Fact) {
        let (followed, of_stops) = (self.is_followed(), &self.0.stops_and_resumes);
        if !followed && of_stops.receiver_count() == 0 {
            return;
        }
        let fact = Arc::new(fact());
        // This fails when nothing follows the stops.
        _ = of_stops.send(fact.clone());
        if followed {
            self.send(fact);
        }
    }

    /// Makes a fact, if there is a follower.
    pub(crate) fn make(&self, fact: impl FnOnce() -> Fact) {
        if self.is_followed() {
            self.send(Arc::new(fact()));
        }
    }

    /// Whether there is a follower.
    #[must_use]
    pub fn is_followed(&self) -> bool {
        self.0.stream.receiver_count() > 0
    }

    fn send(&self, fact: Arc<Fact>) {
        let mut last = self.0.last.lock();
        *last += 1;
        let since = self.0.begun.elapsed();
        // This fails when the last follower has left meanwhile.
        _ = self.0.stream.send(NumberedFact {
            number: *last,
            at_us: u64::try_from(since.as_micros()).unwrap_or(u64::MAX),
            fact,
        });
    }
}

/// Makes the facts of one call.
#[derive(Clone, Debug)]
pub struct CallFacts {
    facts: Facts,
    call: Arc<Call>,
    own: Option<Arc<Own>>,
}

#[derive(Debug)]
struct Own {
    queue: mpsc::Sender<Step>,
    /// The number of the last step. Held while a step is queued, so that the queue is in the order of the numbers.
    last: Mutex<u64>,
}

impl Own {
    /// Queues a step, unless the queue has room for fewer than `room` steps.
    fn put(&self, fact: Arc<Fact>, room: usize) {
        let mut last = self.last.lock();
        *last += 1;
        if self.queue.capacity() >= room {
            // This fails when the queue is full, or when its reader has left.
            _ = self.queue.try_send(Step {
                seq: *last,
                at: tokio::time::Instant::now().into_std(),
                fact,
            });
        }
    }
}

impl CallFacts {
    /// The call.
    #[must_use]
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// Gives the call a queue of its own for its progress: waiting, waves, actions and updates, in this order. Must be
    /// called before the call is run.
    pub fn queue(&mut self) -> mpsc::Receiver<Step> {
        let (queue, steps) = mpsc::channel(STEPS);
        self.own = Some(Arc::new(Own {
            queue,
            last: Mutex::default(),
        }));
        steps
    }

    /// Makes the fact that the policy decided whether the call runs.
    pub fn decided(&self, principal: &dyn Display, decision: &'static str, rule: &dyn Display) {
        self.tell(|call| Fact::Policy {
            call,
            principal: principal.to_string(),
            decision,
            rule: rule.to_string(),
        });
    }

    /// Makes the fact that the call got the confirmation that it needed.
    pub fn confirmed(&self, principal: &dyn Display, by: &'static str) {
        self.tell(|call| Fact::Confirmed {
            call,
            principal: principal.to_string(),
            by,
        });
    }

    /// Makes the fact that the call does not run.
    pub fn refused(&self, error: &str) {
        self.tell(|call| Fact::Refused {
            call,
            error: error.to_owned(),
        });
    }

    /// Whether the call has a queue of its own.
    pub(crate) fn has_queue(&self) -> bool {
        self.own.is_some()
    }

    /// Makes a fact for the stream alone.
    pub(crate) fn tell(&self, fact: impl FnOnce(Arc<Call>) -> Fact) {
        self.facts.make(|| fact(self.call.clone()));
    }

    /// Makes a fact for the stream and the call's own queue.
    pub(crate) fn show(&self, fact: impl FnOnce(Arc<Call>) -> Fact) {
        let followed = self.facts.is_followed();
        if !followed && self.own.is_none() {
            return;
        }
        let fact = Arc::new(fact(self.call.clone()));
        if let Some(own) = &self.own {
            own.put(fact.clone(), 1);
        }
        if followed {
            self.facts.send(fact);
        }
    }

    /// Makes a fact for the call's own queue alone.
    pub(crate) fn update(&self, fact: impl FnOnce(Arc<Call>) -> Fact) {
        if let Some(own) = &self.own {
            own.put(Arc::new(fact(self.call.clone())), STEPS / 2);
        }
    }
}

/// The next item of the stream.
#[derive(Clone, Debug)]
pub enum Followed {
    /// The next fact.
    Fact(NumberedFact),
    /// The follower fell behind and lost the facts with these numbers.
    Lost {
        /// The first that is lost.
        from: u64,
        /// The last that is lost.
        to: u64,
    },
}

impl Followed {
    /// The number of the fact, or of the first that is lost.
    #[must_use]
    pub fn from(&self) -> u64 {
        match self {
            Self::Fact(fact) => fact.number,
            Self::Lost { from, .. } => *from,
        }
    }
}

/// Reads the stops and resumes.
#[derive(Debug)]
pub struct StopFollower(broadcast::Receiver<Arc<Fact>>);

impl StopFollower {
    /// The next [`Fact::Stopped`] or [`Fact::Resumed`], and how many were lost before it because the follower fell behind; `None`
    /// when no more facts are made.
    ///
    /// # Cancel safety
    /// Safe, but for the number of those that were lost.
    pub async fn next(&mut self) -> Option<(u64, Arc<Fact>)> {
        let mut lost = 0;
        loop {
            match self.0.recv().await {
                Ok(fact) => return Some((lost, fact)),
                Err(RecvError::Lagged(more)) => lost += more,
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// Reads the stream of facts.
#[derive(Debug)]
pub struct Follower {
    stream: broadcast::Receiver<NumberedFact>,
    next: u64,
}

impl Follower {
    /// The number of the next fact that this follower gets, if it loses none.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// The next fact, or the numbers of the facts that were lost before it; `None` when no more facts are made.
    ///
    /// # Cancel safety
    /// Safe: no fact is lost.
    pub async fn next(&mut self) -> Option<Followed> {
        let received = self.stream.recv().await;
        self.followed(received)
    }

    /// As [`next`](Self::next), for a thread that may wait. Must not be called within a runtime.
    pub fn wait(&mut self) -> Option<Followed> {
        let received = self.stream.blocking_recv();
        self.followed(received)
    }

    /// What [`next`](Self::next) would give at once; `None` if it would wait.
    pub fn ready(&mut self) -> Option<Followed> {
        match self.stream.try_recv() {
            Ok(fact) => self.followed(Ok(fact)),
            Err(TryRecvError::Lagged(lost)) => self.followed(Err(RecvError::Lagged(lost))),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }

    fn followed(&mut self, received: Result<NumberedFact, RecvError>) -> Option<Followed> {
        match received {
            Ok(fact) => {
                self.next = fact.number + 1;
                Some(Followed::Fact(fact))
            }
            Err(RecvError::Lagged(lost)) => {
                let from = self.next;
                self.next += lost;
                let to = self.next - 1;
                Some(Followed::Lost { from, to })
            }
            Err(RecvError::Closed) => None,
        }
    }
}
