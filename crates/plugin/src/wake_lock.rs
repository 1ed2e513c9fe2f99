//! A lock under which one thread waits for changes that other threads make. Read [`WakeLock`].

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

/// A value that threads change, and for whose changes they can wait.
#[derive(Debug, Default)]
pub(crate) struct WakeLock<T> {
    value: Mutex<T>,
    wake: Condvar,
}

/// Access to the value while this lives.
pub(crate) struct WakeGuard<'a, T> {
    value: MutexGuard<'a, T>,
    wake: &'a Condvar,
}

impl<T> WakeLock<T> {
    pub(crate) fn lock(&self) -> WakeGuard<'_, T> {
        WakeGuard {
            value: self.value.lock(),
            wake: &self.wake,
        }
    }
}

impl<T> WakeGuard<'_, T> {
    /// Unlocks, and wakes the threads that wait. Costs no system call when none waits.
    pub(crate) fn wake(self) {
        drop(self.value);
        self.wake.notify_all();
    }

    /// As [`WakeGuard::wait`], for at most this long.
    pub(crate) fn wait_for(mut self, limit: Duration) -> Self {
        self.wake.wait_for(&mut self.value, limit);
        self
    }

    /// Unlocks until another thread calls [`WakeGuard::wake`]; may return without a change.
    pub(crate) fn wait(mut self) -> Self {
        self.wake.wait(&mut self.value);
        self
    }
}

impl<T> Deref for WakeGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for WakeGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
