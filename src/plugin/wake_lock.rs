//! A lock under which one thread waits for what others put there.
//!
//! Waking is a system call even where nobody waits, and these locks are taken for every call; so it is counted who does.
//! Read [`WakeLock`].

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A value that threads change, and wait for changes of.
#[derive(Debug, Default)]
pub(super) struct WakeLock<T> {
    inner: Mutex<Inner<T>>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Inner<T> {
    value: T,
    waiting: usize,
}

/// The value, for as long as this lives.
pub(super) struct Held<'a, T> {
    guard: MutexGuard<'a, Inner<T>>,
    wake: &'a Condvar,
}

impl<T> WakeLock<T> {
    pub(super) fn lock(&self) -> Held<'_, T> {
        Held {
            // None of the sections under these locks leaves anything half done.
            guard: self.inner.lock().unwrap_or_else(PoisonError::into_inner),
            wake: &self.wake,
        }
    }
}

impl<T> Held<'_, T> {
    /// Lets go, and has whoever waits look again.
    pub(super) fn wake(self) {
        let waits = self.guard.waiting > 0;
        drop(self.guard);
        if waits {
            self.wake.notify_all();
        }
    }

    /// As [`Held::wait`], for at most this long.
    pub(super) fn wait_for(mut self, limit: Duration) -> Self {
        self.guard.waiting += 1;
        let waited = self.wake.wait_timeout(self.guard, limit);
        let (mut guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        guard.waiting -= 1;
        Self {
            guard,
            wake: self.wake,
        }
    }

    /// Lets go until somebody wakes; looks may come for nothing.
    pub(super) fn wait(mut self) -> Self {
        self.guard.waiting += 1;
        let mut guard = self.wake.wait(self.guard).unwrap_or_else(PoisonError::into_inner);
        guard.waiting -= 1;
        Self {
            guard,
            wake: self.wake,
        }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard.value
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard.value
    }
}
