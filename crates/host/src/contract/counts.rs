//! Counts of what a toolbox did that was dropped.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// What was dropped or went wrong at the boundary, since the instance was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Completions of runs that had already ended or were given up.
    pub late_completions: u64,
    /// Completions of runs that never were.
    pub unknown_completions: u64,
    /// Starts that were dropped because an emergency stop came after they were planned.
    pub stale_starts: u64,
    /// Log lines past the rate limit.
    pub dropped_logs: u64,
    /// Progress past the rate limit, unreadable, or of no run.
    pub dropped_progress: u64,
    /// Events past the rate limit or unreadable.
    pub dropped_events: u64,
    /// Bus messages that a newer one pushed out before the toolbox read them.
    pub dropped_messages: u64,
    /// Requests that were refused.
    pub refused_requests: u64,
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            late_completions: self.late_completions + other.late_completions,
            unknown_completions: self.unknown_completions + other.unknown_completions,
            stale_starts: self.stale_starts + other.stale_starts,
            dropped_logs: self.dropped_logs + other.dropped_logs,
            dropped_progress: self.dropped_progress + other.dropped_progress,
            dropped_events: self.dropped_events + other.dropped_events,
            dropped_messages: self.dropped_messages + other.dropped_messages,
            refused_requests: self.refused_requests + other.refused_requests,
        }
    }
}

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
