//! Sends the notices of a mount that no order asked for: events, progress and lines for the log. Read [`Voice`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ovos_toolbox_wire::{Event, Progress, Severity};
use protocol::{Counts, Notice, Raw};
use serde_json::{Value, json};

use crate::lanes::NoticeSender;
use crate::secrets::Secrets;

/// The levels of log lines, in the numbers of the protocol.
#[derive(Clone, Copy)]
pub(crate) enum Level {
    Warning = 2,
    Info = 3,
}

/// The state of a mount, as `status` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// The server is being started, or the program is connecting to it.
    Starting,
    /// Its tools can be called.
    Ready,
    /// The server cannot be reached. The program keeps trying.
    Down,
}

impl Backend {
    fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Down => "down",
        }
    }

    fn severity(self) -> Severity {
        match self {
            Self::Starting | Self::Ready => Severity::Info,
            Self::Down => Severity::Warning,
        }
    }
}

/// Sends notices for one toolbox.
#[derive(Clone)]
pub(crate) struct Voice {
    notices: NoticeSender,
    /// The secrets that are removed from all notices that no order asked for.
    secrets: Arc<Secrets>,
    limits: Arc<Mutex<Limits>>,
}

/// The rate limits of the protocol, and the number of notices that were dropped.
struct Limits {
    logs: Rate,
    progress: Rate,
    events: Rate,
    dropped: Counts,
    told: Counts,
}

impl Voice {
    pub(crate) fn new(notices: NoticeSender) -> Self {
        let limits = Limits {
            logs: Rate::new(500.0, 1000.0),
            progress: Rate::new(500.0, 1000.0),
            events: Rate::new(100.0, 200.0),
            dropped: Counts::default(),
            told: Counts::default(),
        };
        Self {
            notices,
            secrets: Arc::default(),
            limits: Arc::new(Mutex::new(limits)),
        }
    }

    /// Returns the same voice, which removes these secrets from notices that no order asked for.
    pub(crate) fn hiding(self, secrets: Arc<Secrets>) -> Self {
        Self { secrets, ..self }
    }

    /// The secrets that it removes.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Sends a notice that must arrive.
    pub(crate) fn say(&self, notice: &Notice) {
        self.notices.say(notice);
    }

    /// Reports how a run ended.
    pub(crate) fn ended(&self, notice: &Notice) {
        self.tell_counts();
        self.notices.say(notice);
    }

    /// Reports the state of the server. The reason is for people.
    pub(crate) fn backend(&self, backend: Backend, reason: &str) {
        let data = json!({"state": backend.word(), "reason": reason});
        self.event("backend", backend.severity(), Some(data));
    }

    /// Reports that the tools have changed.
    pub(crate) fn tools_changed(&self) {
        self.event("tools_changed", Severity::Info, None);
    }

    /// Writes a line to the log; it may be lost.
    pub(crate) fn log(&self, level: Level, target: &str, message: &str) {
        let notice = Notice::Log {
            level: level as u32,
            target: target.to_owned(),
            message: self.secrets.hide(message),
        };
        let said = self.limited(|limits| &mut limits.logs) && self.notices.say_or_drop(&notice);
        if !said {
            self.drops(|dropped| &mut dropped.dropped_logs);
        }
    }

    /// Reports progress of a run; it may be lost.
    pub(crate) fn progress(&self, run: u64, progress: &Progress) {
        let progress = Progress {
            message: progress.message.as_ref().map(|text| self.secrets.hide(text)),
            ..progress.clone()
        };
        let notice = Notice::Progress {
            run,
            progress: Raw::of(&progress),
        };
        let said = self.limited(|limits| &mut limits.progress) && self.notices.say_or_drop(&notice);
        if !said {
            self.drops(|dropped| &mut dropped.dropped_progress);
        }
    }

    /// Counts a start that was dropped because it was planned before an emergency stop.
    pub(crate) fn dropped_stale_start(&self) {
        self.drops(|dropped| &mut dropped.stale_starts);
    }

    fn event(&self, kind: &str, severity: Severity, data: Option<Value>) {
        if !self.limited(|limits| &mut limits.events) {
            return self.drops(|dropped| &mut dropped.dropped_events);
        }
        self.tell_counts();
        let event = Event {
            kind: kind.to_owned(),
            severity,
            data: data.map(|data| self.secrets.hide_in(&data)),
        };
        self.notices.say(&Notice::Event(Raw::of(&event)));
    }

    fn limited(&self, rate: impl FnOnce(&mut Limits) -> &mut Rate) -> bool {
        rate(&mut self.limits()).allows(Instant::now())
    }

    fn drops(&self, count: impl FnOnce(&mut Counts) -> &mut u64) {
        *count(&mut self.limits().dropped) += 1;
    }

    fn tell_counts(&self) {
        let mut limits = self.limits();
        if limits.dropped != limits.told {
            limits.told = limits.dropped;
            self.notices.say(&Notice::Counts(limits.dropped));
        }
    }

    fn limits(&self) -> std::sync::MutexGuard<'_, Limits> {
        // The lock guards numbers only, so a panic leaves nothing half done.
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A rate limit: this many a second, and this many at once.
struct Rate {
    each_second: f64,
    at_once: f64,
    left: f64,
    since: Option<Instant>,
}

impl Rate {
    fn new(each_second: f64, at_once: f64) -> Self {
        Self {
            each_second,
            at_once,
            left: at_once,
            since: None,
        }
    }

    fn allows(&mut self, now: Instant) -> bool {
        let passed = self.since.map_or(0.0, |since| (now - since).as_secs_f64());
        self.since = Some(now);
        self.left = (self.left + passed * self.each_second).min(self.at_once);
        let allowed = self.left >= 1.0;
        if allowed {
            self.left -= 1.0;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_rate_allows_some_at_once_and_then_its_pace() {
        let mut rate = Rate::new(10.0, 3.0);
        let start = Instant::now();
        let at_once = (0..9).filter(|_| rate.allows(start)).count();
        assert_eq!(at_once, 3);
        let later = start + Duration::from_millis(200);
        let after = (0..9).filter(|_| rate.allows(later)).count();
        assert_eq!(after, 2);
    }
}
