//! Counts who uses a copy of a toolbox, and lets nobody in once it is being replaced.
//!
//! Without it a call could find a copy in a snapshot, and begin on it after the copy was drained. Read [`Gate`] first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

const CLOSED: usize = 1;
const ONE: usize = 2;

/// The way into one copy.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Twice the number of users, plus one when it is closed.
    state: AtomicUsize,
    left: Notify,
}

/// Keeps a copy from being closed, within the bounds of the drain. Hold it for the length of a call.
#[derive(Debug)]
pub struct InUse {
    gate: Arc<Gate>,
}

impl Gate {
    /// Lets a user in, unless the gate is closed.
    pub(super) fn enter(self: &Arc<Self>) -> Option<InUse> {
        let mut state = self.state.load(Ordering::Acquire);
        loop {
            if state & CLOSED != 0 {
                return None;
            }
            match self
                .state
                .compare_exchange_weak(state, state + ONE, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => {
                    return Some(InUse {
                        gate: Arc::clone(self),
                    });
                }
                Err(now) => state = now,
            }
        }
    }

    /// Lets nobody in from now on.
    pub(super) fn close(&self) {
        self.state.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Waits until everybody has left.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn idle(&self) {
        loop {
            let left = self.left.notified();
            if self.state.load(Ordering::Acquire) < ONE {
                return;
            }
            left.await;
        }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if self.gate.state.fetch_sub(ONE, Ordering::AcqRel) < ONE + ONE {
            self.gate.left.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_closed_gate_lets_nobody_in_and_is_idle_when_the_last_one_left() {
        let gate = Arc::new(Gate::default());
        let (first, second) = (gate.enter(), gate.enter());
        assert!(first.is_some());
        gate.close();
        assert!(gate.enter().is_none());
        drop(first);
        assert!(gate.idle().now_or_never().is_none());
        let mut waiting = Box::pin(gate.idle());
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(second);
        assert!(waiting.now_or_never().is_some());
    }
}
