//! One action that was started, which ends exactly once. Read [`Run`].

use ovos_toolbox_wire::{Content, Failure, FailureKind, Progress};
use protocol::{Notice, Raw, RunEnd};
use serde::Serialize;

use crate::link::Link;

/// An action that was started. If it is dropped before its end was reported, it ends with an error.
#[derive(Debug)]
pub struct Run {
    number: u64,
    epoch: u64,
    wants_progress: bool,
    link: Link,
    ended: bool,
}

impl Run {
    pub(crate) fn new(number: u64, epoch: u64, wants_progress: bool, link: Link) -> Self {
        Self {
            number,
            epoch,
            wants_progress,
            link,
            ended: false,
        }
    }

    /// The number of the run, which a cancel names.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The emergency stop that was the newest when the action was planned.
    #[must_use]
    pub fn stop_epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether an emergency stop came since the action was planned. It may come while [`Toolbox::start`](crate::Toolbox::start) is
    /// under way: what moves a machine looks here once more when it has begun, and brings it to rest.
    #[must_use]
    pub fn is_void(&self) -> bool {
        self.epoch < self.link.stop_epoch()
    }

    /// What reports the progress of the run, if its caller wants any.
    #[must_use]
    pub fn progress(&self) -> Option<Steps> {
        self.wants_progress.then(|| Steps {
            run: self.number,
            link: self.link.clone(),
        })
    }

    /// Ends the run with an output.
    pub fn succeed(self, output: &impl Serialize) {
        match serde_json::to_string(output).and_then(Raw::from_text) {
            Ok(output) => self.end(RunEnd::Output(output), None),
            Err(error) => {
                let text = format!("the result cannot be written as JSON: {error}");
                self.fail(&Failure::new(FailureKind::ToolboxError, text));
            }
        }
    }

    /// Ends the run with an error.
    pub fn fail(self, failure: &Failure) {
        self.end(RunEnd::Error(Raw::of(failure)), None);
    }

    /// Ends the run. `content` are pictures and other media beside an output.
    pub fn end(mut self, end: RunEnd, content: Option<Raw<Vec<Content>>>) {
        self.ended = true;
        self.link.ended(self.number, end, content);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.ended {
            let lost = Failure::new(FailureKind::InternalError, "its program lost the run");
            self.link.ended(self.number, RunEnd::Error(Raw::of(&lost)), None);
        }
    }
}

/// Reports the progress of a run.
#[derive(Clone, Debug)]
pub struct Steps {
    run: u64,
    link: Link,
}

impl Steps {
    /// Reports progress; it may be lost.
    pub fn report(&self, progress: &Progress) {
        if self.link.limits().allows_progress() {
            self.send(progress);
        }
    }

    /// As [`Steps::report`], for progress whose rate was checked already.
    pub fn send(&self, progress: &Progress) {
        let (run, progress) = (self.run, Raw::of(progress));
        self.link.chatter(&Notice::Progress { run, progress });
    }
}
