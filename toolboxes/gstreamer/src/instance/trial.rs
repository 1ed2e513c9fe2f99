//! Who is suspected when the process dies.
//!
//! Owns the trial that an instance is on when it has just been started. The list on disk says who is: only these are
//! suspected when the process dies, not what ran beside them for hours. After a crash suspects come back one after another,
//! each when all others have passed. When nobody was on trial all come back at once, on trial for longer: should it be one
//! of them, the next crash tells. Read [`Table::take_turn`].

use std::time::{Duration, Instant};

use super::entry::Instance;
use super::table::Table;

/// How long an instance is on trial when it was asked for.
pub(super) const TRIAL: Duration = Duration::from_secs(5);
/// And when it comes back after a crash; then earlier crashes are forgotten.
pub(super) const LONG_TRIAL: Duration = Duration::from_secs(60);

impl Instance {
    /// Puts it on trial; the list on disk is to be written before it is started.
    pub(super) fn put_on_trial(&self, time: Duration) {
        self.change_declared(|declared| declared.on_trial = true);
        self.lock().trial_until = Some(Instant::now() + time);
    }

    /// Ends the trial when its time is over, and forgets earlier crashes. False when it goes on or there was none.
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

    /// Whether the process died with it, and it was not tried again yet.
    pub(super) fn is_suspect(&self) -> bool {
        let trial = self.lock().trial_until;
        trial.is_none() && self.declared().crashes > 0
    }

    fn is_on_trial(&self) -> bool {
        self.lock()
            .trial_until
            .is_some_and(|until| Instant::now() < until)
    }
}

impl Table {
    /// Puts a suspect on trial when it is its turn: nothing else is on trial, and no suspect stands before it.
    pub(super) fn take_turn(&self, suspect: &Instance) -> bool {
        {
            let state = self.lock();
            let others = || state.live.values().filter(|other| other.order != suspect.order);
            let first = others().all(|other| other.order > suspect.order || !other.is_suspect());
            if !first || others().any(|other| other.is_on_trial()) {
                return false;
            }
            suspect.put_on_trial(LONG_TRIAL);
        }
        self.save();
        true
    }
}
