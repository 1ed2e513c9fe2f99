//! The messages that a toolbox sends by itself: events, progress and log lines.
//!
//! Decides, at both ends, which of them are readable and within the rate limits, and counts the ones that are dropped. Read
//! [`MessageLimits`].

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{Event, Progress};
use parking_lot::Mutex;
use protocol::Counts;

use crate::counts::Counters;
use crate::json;
use crate::rate::Rate;

/// The levels of log lines.
pub mod level {
    /// Something failed.
    pub const ERROR: u32 = 1;
    /// Something is not as it should be.
    pub const WARN: u32 = 2;
    /// For people who follow what happens.
    pub const INFO: u32 = 3;
    /// For who looks for a cause.
    pub const DEBUG: u32 = 4;
    /// For who looks for it very closely.
    pub const TRACE: u32 = 5;
}

/// Log lines, topics, progress, events and the data of requests are small; a larger one is dropped.
pub const MAX_SMALL_BYTES: usize = 256 * 1024;

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
    logged_at: Option<Instant>,
}

impl LeftOut {
    /// Counts one more; returns how many there are since the last time, if it is time to say so.
    fn one_more(&mut self, now: Instant) -> Option<u64> {
        self.lines += 1;
        let due = self
            .logged_at
            .is_none_or(|logged_at| now.saturating_duration_since(logged_at) >= REMINDER);
        due.then(|| {
            self.logged_at = Some(now);
            std::mem::take(&mut self.lines)
        })
    }
}

/// A line for the log.
#[derive(Debug)]
pub struct Line<'a> {
    /// One of [`level`]; another is shown as [`level::INFO`].
    pub level: u32,
    /// Where it comes from, as the toolbox names it; may be empty.
    pub target: &'a str,
    /// The line itself.
    pub message: Cow<'a, str>,
}

/// Writes a line. Returns at once.
pub type Write = Box<dyn Fn(Line<'_>) + Send + Sync>;

/// Checks the messages that one copy of a toolbox sends by itself.
pub struct MessageLimits {
    counters: Arc<Counters>,
    write: Write,
    logs: Rate,
    log_bytes: Rate,
    left_out: Mutex<LeftOut>,
    progress: Rate,
    events: Rate,
    urgent_events: Rate,
    latches: Rate,
}

impl MessageLimits {
    /// The checks of one copy, none of whose messages was sent yet. `write` gets the lines that are let through.
    #[must_use]
    pub fn new(counters: Arc<Counters>, write: Write) -> Self {
        Self {
            counters,
            write,
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

    /// The numbers of messages that were dropped.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Writes a line, if the toolbox may log that much.
    pub fn log<E: Display>(&self, level: u32, target: &str, message: Result<&str, E>) {
        let bytes = message.as_ref().map_or(0, |message| message.len()) + LINE;
        if !self.logs.allows() || !self.log_bytes.allows_many(bytes) {
            self.counters.add(|counts| &mut counts.dropped_logs);
            if let Some(lines) = self.left_out.lock().one_more(Instant::now()) {
                let text = format!(
                    "dropped {lines} of its log lines: a toolbox may log {} KiB at once and {} KiB per second",
                    LOG_BURST >> 10,
                    LOG_PER_SECOND >> 10
                );
                self.write(level::WARN, "", text.into());
            }
            return;
        }
        match message {
            Ok(message) => self.write(level, target, message.into()),
            Err(error) => {
                let text = format!("a log line of the toolbox {error}");
                self.write(level::WARN, target, text.into());
            }
        }
    }

    fn write(&self, level: u32, target: &str, message: Cow<'_, str>) {
        (self.write)(Line {
            level,
            target,
            message,
        });
    }

    /// Whether one more progress may be reported; counts it if not.
    pub fn allows_progress(&self) -> bool {
        self.counted(self.progress.allows(), |counts| &mut counts.dropped_progress)
    }

    /// The progress that a text should be, if a run that `is_live` wants it and it may be reported.
    pub fn progress<E>(&self, is_live: bool, json: Result<&str, E>) -> Option<Progress> {
        let progress = small(json).and_then(|text| json::read::<Progress>(text).ok());
        let progress = progress.filter(|_| is_live && self.progress.allows());
        self.counted(progress.is_some(), |counts| &mut counts.dropped_progress);
        progress
    }

    /// Whether one more event of this kind may be reported; counts it if not.
    pub fn allows(&self, event: &Event) -> bool {
        let rate = match event.kind.as_str() {
            "latched" => &self.latches,
            "backend" | "tools_changed" => &self.urgent_events,
            _ => &self.events,
        };
        self.counted(rate.allows(), |counts| &mut counts.dropped_events)
    }

    /// The event that a text should be, if it may be reported.
    pub fn event<E>(&self, json: Result<&str, E>) -> Option<Event> {
        let Some(event) = small(json).and_then(|text| json::read::<Event>(text).ok()) else {
            self.counters.add(|counts| &mut counts.dropped_events);
            self.complain("an event of the toolbox is not an event object, or is longer than 256 KiB");
            return None;
        };
        self.allows(&event).then_some(event)
    }

    /// A warning about the toolbox, within its own log limit.
    pub fn complain(&self, text: &str) {
        self.log(level::WARN, "", Ok::<_, String>(text));
    }

    fn counted(&self, allowed: bool, which: fn(&mut Counts) -> &mut u64) -> bool {
        if !allowed {
            self.counters.add(which);
        }
        allowed
    }
}

impl fmt::Debug for MessageLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageLimits")
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// The text, unless it is too long.
fn small<E>(json: Result<&str, E>) -> Option<&str> {
    json.ok().filter(|text| text.len() <= MAX_SMALL_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_said_at_once_and_then_now_and_then() {
        let mut left_out = LeftOut::default();
        let start = Instant::now();
        let mut at = |seconds| left_out.one_more(start + Duration::from_secs(seconds));
        assert_eq!(
            [at(0), at(0), at(9), at(10), at(11), at(20)],
            [Some(1), None, None, Some(3), None, Some(2)]
        );
    }
}
