//! Calls that go on after their request was answered, because a machine takes longer than a client waits.
//!
//! A request whose call has not ended within the client's patience is answered with the id of the call, and the call is *left*. From
//! then on it lives on a lease, which its client renews by asking for it; a client that never asks again gets one lease. Read
//! [`LongCall`]: its task is on one side, the requests that ask for it on the other.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use client::payload::ProgressMessage;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::call_progress::CallProgress;

/// How many calls of one client may go on after their requests.
pub const MOST_LEFT: usize = 16;

/// How many outcomes are kept for a client, and for how long, until it asks for them.
const MOST_KEPT: usize = 16;
const KEPT: Duration = Duration::from_secs(600);

/// The calls of one client that were left.
pub struct LongCalls<T> {
    left: Mutex<VecDeque<Arc<LongCall<T>>>>,
    lease: Duration,
}

/// One call. `T` is its outcome.
pub struct LongCall<T> {
    call_id: String,
    tool: String,
    begun: Instant,
    begun_at: SystemTime,
    lease: Duration,
    state: watch::Sender<State<T>>,
}

struct State<T> {
    /// Since when the call runs and its request waits for it. `None` before, and while a person is asked.
    waits_since: Option<Instant>,
    stage: Stage,
    progress: CallProgress,
    /// How many requests ask for the call now, and until when it lives without one.
    asking: usize,
    lives_until: Instant,
    /// Why the call has to end.
    end: Option<&'static str>,
    outcome: Option<T>,
    ended: Option<Instant>,
}

/// What became of the request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits for the outcome.
    Waits,
    /// It wants to be answered without the outcome, when nothing more is sent for it.
    Leaves,
    /// It was answered.
    Left,
}

/// A request that asks for a call. While there is one the call goes on; then a new lease begins.
pub struct AskGuard<T>(Arc<LongCall<T>>);

/// A request that waits for its own call. If it is dropped before the call ends or is left, the call ends.
pub struct PendingRequest<T>(Arc<LongCall<T>>);

/// The time for which a request waits for its running call.
pub struct WaitGuard<'a, T>(&'a LongCall<T>);

impl<T> LongCalls<T> {
    /// A client without calls. `lease` is how long a call goes on after its client asked for it.
    #[must_use]
    pub fn new(lease: Duration) -> Self {
        Self {
            left: Mutex::default(),
            lease,
        }
    }

    /// A new call, which is not left yet.
    #[must_use]
    pub fn call(&self, call_id: &str, tool: &str) -> Arc<LongCall<T>> {
        let now = Instant::now();
        Arc::new(LongCall {
            call_id: call_id.to_owned(),
            tool: tool.to_owned(),
            begun: now,
            begun_at: SystemTime::now(),
            lease: self.lease,
            state: watch::Sender::new(State {
                waits_since: None,
                stage: Stage::Waits,
                progress: CallProgress::default(),
                asking: 0,
                lives_until: now,
                end: None,
                outcome: None,
                ended: None,
            }),
        })
    }

    /// Takes a call among those that the client can ask for. `false` if as many go on as may: then its request has to wait on. A
    /// call that is not [left](LongCall::leave) has no lease: its door ends it.
    pub fn keep(&self, call: &Arc<LongCall<T>>) -> bool {
        let mut left = self.left.lock();
        forget(&mut left);
        if left.iter().any(|kept| Arc::ptr_eq(kept, call)) {
            return true;
        }
        if left.iter().filter(|call| !call.has_ended()).count() >= MOST_LEFT {
            return false;
        }
        left.push_back(Arc::clone(call));
        true
    }

    /// Forgets a call whose request was answered with its outcome after all.
    fn take_back(&self, call: &Arc<LongCall<T>>) {
        self.left.lock().retain(|kept| !Arc::ptr_eq(kept, call));
    }

    /// Whether as many calls go on as may.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.left.lock().iter().filter(|call| !call.has_ended()).count() >= MOST_LEFT
    }

    /// The call with this id, if it was left.
    #[must_use]
    pub fn find(&self, call_id: &str) -> Option<Arc<LongCall<T>>> {
        let left = self.left.lock();
        left.iter().find(|call| call.call_id == call_id.trim()).cloned()
    }

    /// The calls that go on, and those whose outcome is kept, the oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<LongCall<T>>> {
        let mut left = self.left.lock();
        forget(&mut left);
        left.iter().cloned().collect()
    }

    /// Renews the lease of all calls: the client shows that it is there.
    pub fn renew(&self) {
        for call in self.left.lock().iter() {
            call.renew();
        }
    }
}

/// Forgets the outcomes that are too old, or too many.
fn forget<T>(left: &mut VecDeque<Arc<LongCall<T>>>) {
    let mut kept = 0;
    let mut newest_first: VecDeque<_> = left
        .drain(..)
        .rev()
        .filter(|call| match call.state.borrow().ended {
            None => true,
            Some(ended) => {
                kept += 1;
                kept <= MOST_KEPT && ended.elapsed() < KEPT
            }
        })
        .collect();
    left.extend(newest_first.drain(..).rev());
}

impl<T> LongCall<T> {
    /// Its id, which is the `call_id` of the bus.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The name of its tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// How long ago it began.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// When it began, as the clock of the machine had it.
    #[must_use]
    pub fn begun_at(&self) -> SystemTime {
        self.begun_at
    }

    /// How long it goes on after its client asked for it.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.lease
    }

    /// How far it is, in words; empty if that is not known.
    #[must_use]
    pub fn progress(&self) -> String {
        self.state.borrow().progress.to_string()
    }

    /// Whether its outcome is there.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state.borrow().ended.is_some()
    }

    /// Whether it goes on without its request.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.state.borrow().stage == Stage::Left
    }

    /// Why it was told to end, if it was.
    #[must_use]
    pub fn was_told_to_end(&self) -> Option<&'static str> {
        self.state.borrow().end
    }

    // What its task does.

    /// Records progress.
    pub fn note(&self, progress: &ProgressMessage) {
        self.state.send_modify(|state| state.progress.note(progress));
    }

    /// Counts the time for which its request waits, until the guard is dropped.
    #[must_use]
    pub fn waits(&self) -> WaitGuard<'_, T> {
        self.state
            .send_modify(|state| state.waits_since = Some(Instant::now()));
        WaitGuard(self)
    }

    /// Waits until its request wants to be answered without the outcome.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn leaves(&self) {
        self.until(|state| state.stage != Stage::Waits).await;
    }

    /// Records that nothing more is sent for its request. From now on it lives on its lease.
    pub fn leave(&self) {
        self.state.send_modify(|state| {
            state.stage = Stage::Left;
            state.lives_until = Instant::now() + self.lease;
        });
    }

    /// Waits until it has to end, and returns why: its lease is over, or it was told to.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn ends(&self) -> &'static str {
        let mut changes = self.state.subscribe();
        loop {
            let (end, lives_until) = {
                let state = changes.borrow_and_update();
                let is_leased = state.stage == Stage::Left && state.asking == 0;
                (state.end, is_leased.then_some(state.lives_until))
            };
            if let Some(why) = end {
                return why;
            }
            let over = async {
                match lives_until {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = over => self.end("its client did not ask for it again"),
                // The sender is a field, so it exists as long as `self`.
                _ = changes.changed() => {}
            }
        }
    }

    /// Records its outcome.
    pub fn ended(&self, outcome: T) {
        self.state.send_modify(|state| {
            state.outcome = Some(outcome);
            state.ended = Some(Instant::now());
        });
    }

    // What requests do.

    /// Tells it to end. The first reason counts.
    pub fn end(&self, why: &'static str) {
        self.state.send_modify(|state| _ = state.end.get_or_insert(why));
    }

    /// Renews its lease.
    pub fn renew(&self) {
        self.state
            .send_modify(|state| state.lives_until = Instant::now() + self.lease);
    }

    /// Asks for it: it goes on until the guard is dropped, and one lease longer.
    #[must_use]
    pub fn ask(self: &Arc<Self>) -> AskGuard<T> {
        self.state.send_modify(|state| state.asking += 1);
        AskGuard(Arc::clone(self))
    }

    async fn until(&self, is_so: impl FnMut(&State<T>) -> bool) {
        // The sender is a field, so it exists as long as `self`.
        _ = self.state.subscribe().wait_for(is_so).await;
    }
}

impl<T: Clone> LongCall<T> {
    /// Its outcome, if it has ended.
    #[must_use]
    pub fn outcome(&self) -> Option<T> {
        self.state.borrow().outcome.clone()
    }

    /// Waits for its outcome, for at most `limit`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn outcome_within(&self, limit: Duration) -> Option<T> {
        let ended = self.until(|state| state.outcome.is_some());
        _ = tokio::time::timeout(limit, ended).await;
        self.outcome()
    }
}

impl<T: Clone> PendingRequest<T> {
    /// The request of a call.
    #[must_use]
    pub fn new(call: &Arc<LongCall<T>>) -> Self {
        Self(Arc::clone(call))
    }

    /// Waits for the outcome. If the call runs for longer than `patience`, it is left among `calls`, and there is none.
    ///
    /// # Cancel safety
    /// If it is dropped, the call goes on until this guard is dropped.
    pub async fn outcome(&self, patience: Duration, calls: &LongCalls<T>) -> Option<T> {
        let mut changes = self.0.state.subscribe();
        let mut is_kept = false;
        loop {
            let (outcome, stage, since) = {
                let state = changes.borrow_and_update();
                (state.outcome.clone(), state.stage, state.waits_since)
            };
            if outcome.is_some() {
                if is_kept {
                    calls.take_back(&self.0);
                }
                return outcome;
            }
            if stage == Stage::Left {
                return None;
            }
            let too_long = async {
                match since {
                    Some(since) if !is_kept => sleep_until(since + patience).await,
                    _ => pending().await,
                }
            };
            tokio::select! {
                // The sender is a field, so it exists as long as `self`.
                _ = changes.changed() => {}
                () = too_long => {
                    if calls.keep(&self.0) {
                        is_kept = true;
                        self.0.state.send_modify(|state| state.stage = Stage::Leaves);
                    } else {
                        // Too many go on already: this one is waited for, as long as its client does.
                        changes.changed().await.ok()?;
                    }
                }
            }
        }
    }
}

impl<T> Drop for PendingRequest<T> {
    fn drop(&mut self) {
        if !self.0.has_ended() && !self.0.is_left() {
            self.0.end("its request is gone");
        }
    }
}

impl<T> Drop for AskGuard<T> {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| {
            state.asking = state.asking.saturating_sub(1);
            state.lives_until = Instant::now() + self.0.lease;
        });
    }
}

impl<T> Drop for WaitGuard<'_, T> {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.waits_since = None);
    }
}

#[cfg(test)]
#[path = "long_calls_tests.rs"]
mod tests;
