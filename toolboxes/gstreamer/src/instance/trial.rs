//! Attribution of process crashes to instances.
//!
//! A newly started instance is on trial, and the list on disk says so: after a crash only instances on trial are
//! suspects, not those that had run for hours. Suspects are started one after another, each when all others have passed
//! their trial. If no instance was on trial, all are started at once, with a longer trial, so that the next crash
//! identifies the cause. The thread of a suspect waits for its turn (`worker`).

use std::time::{Duration, Instant};

use super::entry::Instance;

/// Length of a trial after a start by request.
pub(super) const TRIAL: Duration = Duration::from_secs(5);
/// Length of a trial after a crash; passing it clears earlier crashes.
pub(super) const LONG_TRIAL: Duration = Duration::from_secs(60);

impl Instance {
    /// Puts it on trial; the list on disk has to be written before it is started.
    pub(super) fn put_on_trial(&self, time: Duration) {
        self.change_declared(|declared| declared.on_trial = true);
        self.lock().trial_until = Some(Instant::now() + time);
    }

    /// Ends the trial if its time is over, and clears earlier crashes. Returns false while the trial continues, and if
    /// there is no trial.
    pub(super) fn pass(&self) -> bool {
        let passed = {
            let mut view = self.lock();
            let passed = view.trial_until.is_some_and(|until| Instant::now() >= until);
            if passed {
                view.trial_until = None;
            }
            passed
        };
        if passed {
            self.change_declared(|declared| {
                declared.on_trial = false;
                declared.crashes = 0;
            });
        }
        passed
    }

    /// Whether the process crashed during this instance's trial, and the instance was not started since.
    pub(super) fn is_suspect(&self) -> bool {
        let trial = self.lock().trial_until;
        trial.is_none() && self.declared().crashes > 0
    }

    pub(super) fn is_on_trial(&self) -> bool {
        self.lock()
            .trial_until
            .is_some_and(|until| Instant::now() < until)
    }
}
