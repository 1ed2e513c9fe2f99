//! The messages that a toolbox sends by itself: events, progress and log lines.
//!
//! Decides which of them are readable and within the rate limits, and counts the ones that are dropped. Read
//! [`UnaskedMessages`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use ovos_toolbox_abi::level;
use ovos_toolbox_wire::{Event, Progress};
use parking_lot::Mutex;

use crate::contract::counts::Counters;
use crate::contract::json;
use crate::contract::services::{HostServices, Origin};
use crate::ffi::bytes::Unreadable;
use crate::ffi::journal;
use crate::ffi::rate::Rate;
use engine::ProgressSink;

/// Log lines, topics, progress, events and the data of requests are small; a larger one is dropped.
pub(crate) const MAX_SMALL_BYTES: usize = 256 * 1024;

/// How many bytes of log a toolbox may write at once, and in each second: with the default logging it takes more than half a
/// day to fill the log alone.
const LOG_BURST: u32 = 1 << 20;
const LOG_PER_SECOND: u32 = 4 << 10;

/// The bytes of a line in the log beside its message.
const LINE: usize = 80;

/// The shortest time between two log lines that say how many others were left out.
const REMINDER: Duration = Duration::from_secs(10);

/// The log lines that were left out.
#[derive(Default)]
struct LeftOut {
    lines: u64,
    told: Option<Instant>,
}

impl LeftOut {
    /// Counts one more; returns how many there are since the last time, if it is time to say so.
    fn one_more(&mut self, now: Instant) -> Option<u64> {
        self.lines += 1;
        let due = self
            .told
            .is_none_or(|told| now.saturating_duration_since(told) >= REMINDER);
        due.then(|| {
            self.told = Some(now);
            std::mem::take(&mut self.lines)
        })
    }
}

/// Passes on the messages that one copy of a toolbox sends by itself.
pub(crate) struct UnaskedMessages {
    pub(crate) origin: Origin,
    pub(crate) counters: Arc<Counters>,
    pub(crate) services: Arc<dyn HostServices>,
    logs: Rate,
    log_bytes: Rate,
    left_out: Mutex<LeftOut>,
    progress: Rate,
    events: Rate,
    urgent_events: Rate,
    latches: Rate,
}

impl UnaskedMessages {
    pub(crate) fn new(origin: Origin, counters: Arc<Counters>, services: Arc<dyn HostServices>) -> Self {
        Self {
            origin,
            counters,
            services,
            // Far above the rate of a sane toolbox, far below a rate that would hurt the service or the bus.
            logs: Rate::new(1000, 500),
            log_bytes: Rate::new(LOG_BURST, LOG_PER_SECOND),
            left_out: Mutex::default(),
            progress: Rate::new(1000, 500),
            events: Rate::new(200, 50),
            urgent_events: Rate::new(200, 100),
            // A limit of its own, so that no other message of a toolbox can displace an emergency stop.
            latches: Rate::new(200, 100),
        }
    }

    pub(crate) fn log(&self, level: u32, target: &str, message: Result<&str, Unreadable>) {
        let Origin {
            toolbox_id,
            generation,
        } = &self.origin;
        let bytes = message.as_ref().map_or(0, |message| message.len()) + LINE;
        if !self.logs.allows() || !self.log_bytes.allows_many(bytes) {
            self.counters.add(|counts| &mut counts.dropped_logs);
            if let Some(lines) = self.left_out.lock().one_more(Instant::now()) {
                let text = format!(
                    "{lines} of its log lines are left out: a toolbox may log {} KiB at once and {} KiB a second, so that the log \
                     keeps what others say",
                    LOG_BURST >> 10,
                    LOG_PER_SECOND >> 10
                );
                journal::write(level::WARN, toolbox_id, *generation, "", &text);
            }
            return;
        }
        match message {
            Ok(message) => journal::write(level, toolbox_id, *generation, target, message),
            Err(error) => {
                let text = format!("a log line of the toolbox {error}");
                journal::write(level::WARN, toolbox_id, *generation, target, &text);
            }
        }
    }

    /// Passes progress to `sink`, which the run has while it is under way.
    pub(crate) fn progress(&self, sink: Option<ProgressSink>, json: Result<&str, Unreadable>) {
        let progress = small(json).and_then(|text| json::read::<Progress>(text).ok());
        let sink = sink.filter(|_| self.progress.allows());
        match (sink, progress) {
            (Some(sink), Some(progress)) => sink(progress),
            _ => self.counters.add(|counts| &mut counts.dropped_progress),
        }
    }

    pub(crate) fn event(&self, json: Result<&str, Unreadable>) {
        let Some(event) = small(json).and_then(|text| json::read::<Event>(text).ok()) else {
            self.counters.add(|counts| &mut counts.dropped_events);
            self.complain("an event of the toolbox is not an event object, or is longer than 256 KiB");
            return;
        };
        let rate = match event.kind.as_str() {
            "latched" => &self.latches,
            "backend" | "tools_changed" => &self.urgent_events,
            _ => &self.events,
        };
        if rate.allows() {
            self.services.event(&self.origin, event);
        } else {
            self.counters.add(|counts| &mut counts.dropped_events);
        }
    }

    /// A warning about the toolbox, within its own log limit.
    pub(crate) fn complain(&self, text: &str) {
        self.log(level::WARN, "", Ok(text));
    }
}

/// The text, unless it is too long.
fn small(json: Result<&str, Unreadable>) -> Option<&str> {
    json.ok().filter(|text| text.len() <= MAX_SMALL_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_said_at_once_and_then_now_and_then() {
        let mut left_out = LeftOut::default();
        let begun = Instant::now();
        let mut at = |seconds| left_out.one_more(begun + Duration::from_secs(seconds));
        assert_eq!(
            [at(0), at(0), at(9), at(10), at(11), at(20)],
            [Some(1), None, None, Some(3), None, Some(2)]
        );
    }
}
