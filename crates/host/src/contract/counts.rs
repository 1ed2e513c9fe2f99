//! Counters of the messages of a toolbox that were dropped. Read [`Counters`].

use std::sync::atomic::{AtomicU64, Ordering};

use protocol::Counts;

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) late_completions: Counter,
    pub(crate) unknown_completions: Counter,
    pub(crate) stale_starts: Counter,
    pub(crate) dropped_logs: Counter,
    pub(crate) dropped_progress: Counter,
    pub(crate) dropped_events: Counter,
    pub(crate) dropped_messages: Counter,
    pub(crate) refused_requests: Counter,
}

impl Counters {
    pub(crate) fn read(&self) -> Counts {
        Counts {
            late_completions: self.late_completions.get(),
            unknown_completions: self.unknown_completions.get(),
            stale_starts: self.stale_starts.get(),
            dropped_logs: self.dropped_logs.get(),
            dropped_progress: self.dropped_progress.get(),
            dropped_events: self.dropped_events.get(),
            dropped_messages: self.dropped_messages.get(),
            refused_requests: self.refused_requests.get(),
        }
    }
}
