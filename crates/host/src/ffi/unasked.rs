//! The messages that a toolbox sends by itself: events, progress and log lines.
//!
//! Decides which of them are readable and within the rate limits, and counts the ones that are dropped. Read
//! [`Unasked`].

use std::sync::Arc;

use ovos_toolbox_abi::level;
use ovos_toolbox_wire::{Event, Progress};

use crate::contract::counts::Counters;
use crate::contract::json;
use crate::contract::services::{HostServices, Origin};
use crate::ffi::bytes::Unreadable;
use crate::ffi::journal;
use crate::ffi::rate::Rate;
use engine::ProgressSink;

/// Log lines, topics, progress, events and the data of requests are small; a larger one is dropped.
pub(crate) const MAX_SMALL_BYTES: usize = 256 * 1024;

/// Passes on the messages that one copy of a toolbox sends by itself.
pub(crate) struct Unasked {
    pub(crate) origin: Origin,
    pub(crate) counters: Arc<Counters>,
    pub(crate) services: Arc<dyn HostServices>,
    logs: Rate,
    progress: Rate,
    events: Rate,
    urgent_events: Rate,
    latches: Rate,
}

impl Unasked {
    pub(crate) fn new(origin: Origin, counters: Arc<Counters>, services: Arc<dyn HostServices>) -> Self {
        Self {
            origin,
            counters,
            services,
            // Far above the rate of a sane toolbox, far below a rate that would hurt the service or the bus.
            logs: Rate::new(1000, 500),
            progress: Rate::new(1000, 500),
            events: Rate::new(200, 50),
            urgent_events: Rate::new(200, 100),
            // A limit of its own, so that no other message of a toolbox can displace an emergency stop.
            latches: Rate::new(200, 100),
        }
    }

    pub(crate) fn log(&self, level: u32, target: &str, message: Result<&str, Unreadable>) {
        if !self.logs.allows() {
            self.counters.add(|counts| &mut counts.dropped_logs);
            return;
        }
        let Origin {
            toolbox_id,
            generation,
        } = &self.origin;
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
