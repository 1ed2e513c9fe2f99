//! The emergency-stop state of a toolbox, and the epoch that separates starts before a stop from starts after it.
//!
//! Holds no clock, no toolbox and no file. `tests/interleavings.rs` explores the interleavings of its methods. Read
//! [`Latch`].

use super::sync::{AtomicU64, Mutex, Ordering};

/// The emergency stop that latched a toolbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRecord {
    /// The id of the stop, which a resume has to name.
    pub stop_id: String,
    /// The source of the stop, as text for people.
    pub reason: String,
}

/// Why a latch was not lifted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiftError {
    /// The toolbox is not in emergency stop.
    #[error("it is not in emergency stop state")]
    NotLatched,
    /// Another stop holds the latch.
    #[error("stop_id `{given}` is not the stop in force, which is `{current}`")]
    OtherStop {
        /// The id that the resume named.
        given: String,
        /// The id of the stop that holds the latch.
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
    /// Raised by every stop while it holds the lock above; read without the lock before every start.
    epoch: AtomicU64,
}

impl Latch {
    /// An open latch, or one that is held by a stop from before the service started.
    #[must_use]
    pub fn new(stop: Option<StopRecord>) -> Self {
        Self {
            stop: Mutex::new(stop),
            epoch: AtomicU64::new(0),
        }
    }

    /// Latches, and returns the new epoch. Starts of every older epoch are void from now on.
    pub fn stop(&self, record: StopRecord) -> u64 {
        let mut stop = lock(&self.stop);
        *stop = Some(record);
        // While the lock is held, so that no call is admitted with the new epoch while the latch still looks open.
        self.epoch.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The epoch for a call of effect `motion` or `write`.
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

    /// The epoch for a call that works while the toolbox is latched.
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
    /// See [`LiftError`]. An older id never lifts a newer stop.
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
    // A poisoned lock means that a thread panicked inside one of the short sections above. None of them leaves the
    // record half written, and a stop has to work even after a panic.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
