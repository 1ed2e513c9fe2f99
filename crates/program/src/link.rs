//! What a toolbox sends to the service by itself, and which of its runs are under way. Read [`Link`].

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ovos_toolbox_wire::{Content, Event};
use parking_lot::Mutex;
use protocol::{Counts, Notice, Raw, RunEnd};
use serde_json::Value;

use crate::counts::Counters;
use crate::message_limits::{Line, MessageLimits};
use crate::notices::Notices;

/// Sends the notices of a toolbox. Every method is called from any thread and returns at once; the rates of the protocol hold.
#[derive(Clone, Debug)]
pub struct Link(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    notices: Arc<Notices>,
    limits: MessageLimits,
    /// The runs under way, each with whether it moves something.
    live: Mutex<HashMap<u64, bool>>,
    moving: AtomicUsize,
    /// The newest emergency stop, also if it is known before the toolbox is open.
    stop_epoch: AtomicU64,
    /// The counts that were sent last.
    sent_counts: Mutex<Counts>,
}

impl Link {
    /// A link that sends through `notices`.
    #[must_use]
    pub fn new(notices: Arc<Notices>) -> Self {
        let to = notices.clone();
        let write = move |line: Line<'_>| to.log(line.level, line.target, &line.message);
        Self(Arc::new(Inner {
            notices,
            limits: MessageLimits::new(Arc::default(), Box::new(write)),
            live: Mutex::default(),
            moving: AtomicUsize::new(0),
            stop_epoch: AtomicU64::new(0),
            sent_counts: Mutex::default(),
        }))
    }

    /// Reports an event.
    pub fn event(&self, event: &Event) {
        if self.limits().allows(event) {
            self.tell_counts();
            self.0.notices.data(&Notice::Event(Raw::of(event)));
        }
    }

    /// Reports the event that a text should be.
    pub fn event_text<E: Display>(&self, json: Result<&str, E>) {
        if let Some(event) = self.limits().event(json) {
            self.tell_counts();
            self.0.notices.data(&Notice::Event(Raw::of(&event)));
        }
    }

    /// Writes a line to the log; it may be lost. `level` is one of [`level`](crate::level).
    pub fn log(&self, level: u32, target: &str, message: &str) {
        self.limits().log(level, target, Ok::<_, String>(message));
    }

    /// Asks a question on the bus. Its answer comes through [`Toolbox::respond`](crate::Toolbox::respond).
    pub fn request(&self, request: u64, topic: &str, data: Raw<Value>, timeout: Duration) {
        self.0.notices.data(&Notice::Request {
            request,
            topic: topic.to_owned(),
            data,
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        });
    }

    /// The numbers of messages that were dropped.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        self.limits().counters()
    }

    /// The checks of what the toolbox sends by itself.
    #[must_use]
    pub fn limits(&self) -> &MessageLimits {
        &self.0.limits
    }

    pub(crate) fn notices(&self) -> &Arc<Notices> {
        &self.0.notices
    }

    /// Sends a notice on the data lane.
    pub(crate) fn data(&self, notice: &Notice) {
        self.tell_counts();
        self.0.notices.data(notice);
    }

    /// Sends a notice that may be lost.
    pub(crate) fn chatter(&self, notice: &Notice) {
        self.0.notices.chatter(notice);
    }

    /// The newest emergency stop that is known here.
    pub(crate) fn stop_epoch(&self) -> u64 {
        self.0.stop_epoch.load(Ordering::SeqCst)
    }

    /// Notes an emergency stop; returns the newest.
    pub(crate) fn raise(&self, stop_epoch: u64) -> u64 {
        let before = self.0.stop_epoch.fetch_max(stop_epoch, Ordering::SeqCst);
        before.max(stop_epoch)
    }

    pub(crate) fn is_moving(&self) -> bool {
        self.0.moving.load(Ordering::SeqCst) > 0
    }

    /// Whether a run has been started and has not ended.
    pub(crate) fn is_live(&self, run: u64) -> bool {
        self.0.live.lock().contains_key(&run)
    }

    /// A run is about to begin.
    pub(crate) fn begins(&self, run: u64, moves: bool) {
        self.0.live.lock().insert(run, moves);
        if moves {
            // The service sent the order just now, so it was heard.
            self.0.notices.note_contact();
            if self.0.moving.fetch_add(1, Ordering::SeqCst) == 0 {
                // The control thread has to check the service's silence from now on.
                self.0.notices.wake();
            }
        }
    }

    /// Reports the end of a run.
    pub(crate) fn ended(&self, run: u64, end: RunEnd, content: Option<Raw<Vec<Content>>>) {
        self.data(&Notice::Ended { run, end, content });
        if self.0.live.lock().remove(&run) == Some(true) {
            self.0.moving.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Sends the counts of dropped messages, if they changed.
    pub(crate) fn tell_counts(&self) {
        let now = self.counters().read();
        let mut sent_counts = self.0.sent_counts.lock();
        if *sent_counts != now {
            *sent_counts = now;
            self.0.notices.data(&Notice::Counts(now));
        }
    }
}
