//! Sends the notices of a mount that no order asked for: events, progress and lines for the log. Read [`Reporter`].

use std::sync::Arc;

use ovos_toolbox_wire::{Event, Progress, Severity};
use program::{Link, Steps};
use serde_json::{Value, json};

use crate::secrets::Secrets;

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
    fn as_str(self) -> &'static str {
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
pub(crate) struct Reporter {
    link: Link,
    /// The secrets that are removed from all notices that no order asked for.
    secrets: Arc<Secrets>,
}

impl Reporter {
    pub(crate) fn new(link: Link) -> Self {
        Self {
            link,
            secrets: Arc::default(),
        }
    }

    /// Returns the same reporter, which removes these secrets from notices that no order asked for.
    pub(crate) fn hiding(self, secrets: Arc<Secrets>) -> Self {
        Self { secrets, ..self }
    }

    /// The secrets that it removes.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Reports the state of the server. The reason is for people.
    pub(crate) fn backend(&self, backend: Backend, reason: &str) {
        let data = json!({"state": backend.as_str(), "reason": reason});
        self.event("backend", backend.severity(), Some(data));
    }

    /// Reports that the tools have changed.
    pub(crate) fn tools_changed(&self) {
        self.event("tools_changed", Severity::Info, None);
    }

    /// Writes a line to the log; it may be lost. `level` is one of [`program::level`].
    pub(crate) fn log(&self, level: u32, target: &str, message: &str) {
        self.link.log(level, target, &self.secrets.hide(message));
    }

    /// Reports progress of a run; it may be lost.
    pub(crate) fn progress(&self, steps: &Steps, progress: &Progress) {
        steps.report(&Progress {
            message: progress.message.as_ref().map(|text| self.secrets.hide(text)),
            ..progress.clone()
        });
    }

    fn event(&self, kind: &str, severity: Severity, data: Option<Value>) {
        self.link.event(&Event {
            kind: kind.to_owned(),
            severity,
            data: data.map(|data| self.secrets.hide_in(&data)),
        });
    }
}
