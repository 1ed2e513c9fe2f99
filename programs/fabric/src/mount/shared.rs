//! What the threads of a mount share, and how its failures are said. Read [`Shared`].

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};

use ovos_toolbox_wire::{Event, Failure, FailureKind};
use parking_lot::Mutex;
use program::{Link, level};
use protocol::{Answer, RunEnd};

use super::content;
use super::line::Line;
use super::pending::{Questions, ToolLists};
use super::runs::Runs;
use super::stops::Stops;
use super::view::View;
use crate::messages::RunUpdate;

/// A toolbox of another machine.
#[derive(Debug)]
pub(super) struct Mount(pub(super) Arc<Shared>);

/// What the threads of a mount share.
pub(super) struct Shared {
    pub(super) line: Line,
    /// The toolbox's id on its host.
    pub(super) toolbox: String,
    /// Drawn when this program starts.
    pub(super) mount: String,
    pub(super) link: Link,
    pub(super) view: Mutex<View>,
    pub(super) runs: Mutex<Runs>,
    pub(super) stops: Mutex<Stops>,
    /// The thread that sends stops again.
    pub(super) watcher: OnceLock<Thread>,
    pub(super) lists: Mutex<ToolLists>,
    pub(super) questions: Mutex<Questions<Shared>>,
    /// What the service is told of the backend while the host is reached, by unit.
    pub(super) backends: Mutex<BTreeMap<String, Event>>,
    /// Why there is no contact, as it was told last.
    pub(super) trouble: Mutex<String>,
    /// The service is gone.
    pub(super) is_left: AtomicBool,
    pub(super) is_closed: AtomicBool,
    /// The host was lost since the other end was looked at.
    pub(super) is_doubtful: AtomicBool,
    /// The host was not asked yet who it is, or did not answer.
    pub(super) is_unknown: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("toolbox", &self.toolbox)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn not_reached(&self) -> Failure {
        let (host, at) = (&self.line.host, &self.line.endpoint);
        let trouble = self.trouble.lock().clone();
        let why = match trouble.as_str() {
            "" if !self.view.lock().reached => {
                "it has not answered yet; `ovos-tools fabric doctor` shows why"
            }
            "" => "it does not answer",
            trouble => trouble,
        };
        Failure::new(
            FailureKind::ToolboxUnavailable,
            format!("cannot reach host `{host}` ({at}): {why}"),
        )
    }

    /// The failure of a run whose end nobody knows.
    pub(super) fn lost(&self, why: &str) -> Failure {
        Failure::new(
            FailureKind::ToolboxUnavailable,
            format!(
                "{why} during this call, which may or may not have been carried out: check before you call it again"
            ),
        )
    }

    pub(super) fn finish(
        &self,
        number: u64,
        update: RunUpdate,
        steps: Option<&program::Steps>,
        folder: Option<&str>,
    ) {
        match update {
            RunUpdate::Progress(progress) => {
                if let Some(steps) = steps {
                    steps.report(&progress);
                }
            }
            RunUpdate::Ended { end, content } => {
                let content = content::kept(content, folder);
                let failed = match &end {
                    RunEnd::Output(_) => None,
                    RunEnd::Cancelled => Some("its host ended it".to_owned()),
                    RunEnd::Error(why) | RunEnd::Lost(why) => Some(why.text().to_owned()),
                };
                let ended = self.runs.lock().end(number, end, &content);
                if let Some(why) = failed {
                    self.note_ends(ended, &format!("host `{}` says: {why}", self.line.host));
                }
            }
        }
    }

    /// Does what may wait for the network on a thread that ends with it.
    pub(super) fn aside(&self, name: &str, work: impl FnOnce() + Send + 'static) {
        if let Err(error) = thread::Builder::new().name(name.to_owned()).spawn(work) {
            let text = format!("the thread `{name}` cannot be started: {error}");
            self.link.log(level::ERROR, "fabric", &text);
        }
    }

    /// Logs why runs ended without an output.
    pub(super) fn note_ends(&self, names: impl IntoIterator<Item = String>, why: &str) {
        for name in names {
            self.link.log(level::INFO, "fabric", &format!("{name}: {why}"));
        }
    }
}

/// The failure of an answer that is none.
pub(crate) fn failure_of<T>(answer: Answer<T>) -> Failure {
    match answer {
        Answer::Error(failure) | Answer::Lost(failure) => serde_json::from_str(failure.text())
            .unwrap_or_else(|error| {
                Failure::new(
                    FailureKind::InternalError,
                    format!("an unreadable failure: {error}"),
                )
            }),
        Answer::Ok(_) => Failure::new(FailureKind::InternalError, "it did not fail"),
    }
}
