//! The emergency-stop state of a toolbox, and the epoch that tells starts from before a stop from those after it.
//!
//! Holds no clock, no toolbox and no file. `tests/interleavings.rs` explores its interleavings. Read [`Latch`].

use super::sync::{AtomicU64, Mutex, Ordering};

/// What latched a toolbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRecord {
    /// Names the stop; a resume must name it too.
    pub stop_id: String,
    /// Who or what stopped it, for people.
    pub reason: String,
}

/// Why a latch was not lifted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiftError {
    /// There is nothing to lift.
    #[error("it is not in emergency stop state")]
    NotLatched,
    /// Another stop holds it.
    #[error("stop_id `{given}` is not the stop that holds it, which is `{current}`")]
    OtherStop {
        /// The id that was given.
        given: String,
        /// The stop that holds it now.
        current: String,
    },
}

/// The latch of one toolbox. It belongs to the service and outlives every generation of the toolbox.
///
/// ```text
///            stop(id)                    stop(id2)
///   open ---------------> latched(id) ---------------> latched(id2)
///    ^                        |                              |
///    +------- lift(id) -------+          lift(id): OtherStop-+
/// ```
#[derive(Debug)]
pub struct Latch {
    stop: Mutex<Option<StopRecord>>,
    /// Raised by every stop, under the lock above; read without it before every start.
    epoch: AtomicU64,
}

impl Latch {
    /// Open, or held by a stop from before the service started.
    #[must_use]
    pub fn new(stop: Option<StopRecord>) -> Self {
        Self {
            stop: Mutex::new(stop),
            epoch: AtomicU64::new(0),
        }
    }

    /// Latches, and returns the epoch whose starts may still run: every older one is void from now on.
    pub fn stop(&self, record: StopRecord) -> u64 {
        let mut stop = lock(&self.stop);
        *stop = Some(record);
        // Under the lock, so that no call is admitted with the new epoch while the latch still looks open.
        self.epoch.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The epoch for a call that moves or writes.
    ///
    /// # Errors
    /// The stop that holds the latch.
    pub fn admit(&self) -> Result<u64, StopRecord> {
        let stop = lock(&self.stop);
        match &*stop {
            Some(record) => Err(record.clone()),
            None => Ok(self.epoch.load(Ordering::SeqCst)),
        }
    }

    /// The epoch for a call that works while latched.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Whether a start that was admitted under `epoch` may still go ahead.
    pub fn is_current(&self, epoch: u64) -> bool {
        self.epoch.load(Ordering::SeqCst) == epoch
    }

    /// The stop that holds the latch.
    pub fn holder(&self) -> Option<StopRecord> {
        lock(&self.stop).clone()
    }

    /// Whether `stop_id` is the stop that holds the latch.
    ///
    /// # Errors
    /// See [`LiftError`].
    pub fn check(&self, stop_id: &str) -> Result<(), LiftError> {
        Self::matches(&lock(&self.stop), stop_id)
    }

    /// Opens the latch, if `stop_id` still is the stop that holds it.
    ///
    /// # Errors
    /// See [`LiftError`]; a newer stop is never lifted by an older id.
    pub fn lift(&self, stop_id: &str) -> Result<(), LiftError> {
        let mut stop = lock(&self.stop);
        Self::matches(&stop, stop_id)?;
        *stop = None;
        Ok(())
    }

    fn matches(stop: &Option<StopRecord>, stop_id: &str) -> Result<(), LiftError> {
        match stop {
            None => Err(LiftError::NotLatched),
            Some(record) if record.stop_id == stop_id => Ok(()),
            Some(record) => Err(LiftError::OtherStop {
                given: stop_id.to_owned(),
                current: record.stop_id.clone(),
            }),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> impl std::ops::DerefMut<Target = T> + '_ {
    // A poisoned lock means that a thread panicked inside one of the short sections above, none of which leaves the
    // record half written; and a stop must work after a panic of all things.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
