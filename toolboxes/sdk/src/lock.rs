//! Mutexes of which a panic leaves nothing broken.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks and ignores poisoning: every statement under these locks leaves the data valid.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
