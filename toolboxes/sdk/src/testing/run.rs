//! A run that a test has started.

use std::time::Duration;

use ovos_toolbox_wire::Progress;

use super::{Ended, Harness, peer};

/// A run that was accepted.
pub struct Run<'a> {
    pub(super) harness: &'a Harness,
    pub(super) id: u64,
}

impl Run<'_> {
    /// The run's id.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Waits for the completion.
    ///
    /// # Panics
    /// The run did not complete within the harness's deadline.
    #[must_use]
    pub fn wait(&self) -> Ended {
        self.wait_for(self.harness.deadline).unwrap_or_else(|| {
            panic!(
                "run {} did not complete within {:?}",
                self.id, self.harness.deadline
            )
        })
    }

    /// Waits for the completion, at most this long.
    #[must_use]
    pub fn wait_for(&self, at_most: Duration) -> Option<Ended> {
        self.harness
            .peer
            .wait(at_most, |seen| seen.ended.get(&self.id).cloned())
    }

    /// Asks the run to end.
    pub fn cancel(&self) {
        self.harness.cancel(self.id);
    }

    /// The progress so far.
    #[must_use]
    pub fn progress(&self) -> Vec<Progress> {
        self.harness
            .peer
            .see(|seen| seen.progress.get(&self.id).cloned().unwrap_or_default())
    }

    /// Waits until the run has reported progress `count` times.
    ///
    /// # Panics
    /// The run did not report that often within the harness's deadline.
    #[must_use]
    pub fn wait_progress(&self, count: usize) -> Vec<Progress> {
        let reports = |seen: &peer::Seen| {
            seen.progress
                .get(&self.id)
                .filter(|reports| reports.len() >= count)
                .cloned()
        };
        self.harness
            .peer
            .wait(self.harness.deadline, reports)
            .unwrap_or_else(|| panic!("run {} did not report progress {count} times", self.id))
    }
}
