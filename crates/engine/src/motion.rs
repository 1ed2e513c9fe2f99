//! Which toolboxes have calls under way that move something.
//!
//! Counts these calls, and lets a [`MotionWatch`] record their toolboxes before the first of them starts, because the
//! record has to outlive the service. Holds no clock and no file. Read [`MotionWatch`].

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;

use super::call::Refusal;

/// How long a call that moves something waits for its record.
const RECORD: Duration = Duration::from_secs(1);

/// Records which toolboxes have a call under way that moves something.
pub trait MotionWatch: Send + Sync {
    /// Receives the ids of all moving toolboxes whenever they change: before the first start of a call that moves
    /// something, and after the end of the last one. Changes come one at a time and in order. Called from the tasks of
    /// calls, so it must return at once.
    fn changed(&self, moving: &[&str]);

    /// Resolves when the last change, or a newer one, is recorded. The error is the reason why it is not.
    fn recorded(&self) -> BoxFuture<'static, Result<(), String>>;
}

/// Counts the calls that move something.
#[derive(Default)]
pub(crate) struct Motion {
    watch: OnceLock<Arc<dyn MotionWatch>>,
    moving: Mutex<BTreeMap<String, usize>>,
    /// Work under way that may begin to move something without a new request.
    expected: AtomicUsize,
    any: watch::Sender<bool>,
}

impl Motion {
    /// Sets the watch; only the first one is kept.
    pub(crate) fn watch(&self, watch: Arc<dyn MotionWatch>) {
        _ = self.watch.set(watch);
    }

    /// Whether anything moves, or may begin to without a new request; the receiver is notified of changes.
    pub(crate) fn any(&self) -> watch::Receiver<bool> {
        self.any.subscribe()
    }

    /// Counts a call of this toolbox as moving, until the result is dropped.
    pub(crate) fn begin(&self, toolbox_id: &str) -> MovingCall<'_> {
        self.count(toolbox_id, |calls| calls + 1);
        MovingCall {
            motion: self,
            toolbox_id: toolbox_id.to_owned(),
        }
    }

    /// Makes [`Self::any`] true until the result is dropped, but records nothing: after a crash of the service, work
    /// that has moved nothing yet needs no halt.
    pub(crate) fn expect(&self) -> ExpectedMotion<'_> {
        let moving = self.moving.lock();
        self.expected.fetch_add(1, Ordering::SeqCst);
        self.publish_any(&moving);
        ExpectedMotion(self)
    }

    /// Tells the receivers of [`Self::any`]. Called under the lock of `moving`, so that the last value that is sent is the newest one.
    fn publish_any(&self, moving: &BTreeMap<String, usize>) {
        let expected = self.expected.load(Ordering::SeqCst) > 0;
        self.any.send_replace(expected || !moving.is_empty());
    }

    /// Waits until the present set of moving toolboxes is recorded.
    ///
    /// # Errors
    /// The record was not written in time. Then nothing may move, because after a crash of the service no record would
    /// show that something moved.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn recorded(&self) -> Result<(), Refusal> {
        let Some(watch) = self.watch.get() else {
            return Ok(());
        };
        match timeout(RECORD, watch.recorded()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => Err(Refusal::NotRecorded { why }),
            Err(_) => Err(Refusal::RecordTooLong { limit: RECORD }),
        }
    }

    fn count(&self, toolbox_id: &str, next: impl Fn(usize) -> usize) {
        let mut moving = self.moving.lock();
        let before = moving.get(toolbox_id).copied().unwrap_or(0);
        let now = next(before);
        if now == 0 {
            moving.remove(toolbox_id);
        } else {
            moving.insert(toolbox_id.to_owned(), now);
        }
        let changed = (before == 0) != (now == 0);
        if changed {
            self.publish_any(&moving);
        }
        if changed && let Some(watch) = self.watch.get() {
            let ids: Vec<&str> = moving.keys().map(String::as_str).collect();
            watch.changed(&ids);
        }
    }
}

/// A call that counts as moving until this is dropped.
pub(crate) struct MovingCall<'a> {
    motion: &'a Motion,
    toolbox_id: String,
}

impl Drop for MovingCall<'_> {
    fn drop(&mut self) {
        self.motion
            .count(&self.toolbox_id, |calls| calls.saturating_sub(1));
    }
}

/// Work that may begin to move something without a new request. It counts until this is dropped.
#[must_use = "it counts until it is dropped"]
pub struct ExpectedMotion<'a>(&'a Motion);

impl Drop for ExpectedMotion<'_> {
    fn drop(&mut self) {
        let moving = self.0.moving.lock();
        self.0.expected.fetch_sub(1, Ordering::SeqCst);
        self.0.publish_any(&moving);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    struct Recorder(Arc<Mutex<Vec<String>>>);

    impl MotionWatch for Recorder {
        fn changed(&self, moving: &[&str]) {
            self.0.lock().push(moving.join(" "));
        }
        fn recorded(&self) -> BoxFuture<'static, Result<(), String>> {
            Box::pin(std::future::ready(Ok(())))
        }
    }

    #[test]
    fn the_watch_hears_only_of_the_first_and_the_last_moving_call() {
        let notices = Arc::default();
        let motion = Motion::default();
        motion.watch(Arc::new(Recorder(Arc::clone(&notices))));
        let first = motion.begin("arm");
        let second = motion.begin("arm");
        drop(first);
        let other = motion.begin("base");
        drop(second);
        drop(other);
        assert_eq!(*notices.lock(), ["arm", "arm base", "base", ""]);
    }

    #[test]
    fn what_may_begin_to_move_counts_for_those_who_look_and_is_not_recorded() {
        let notices = Arc::default();
        let motion = Motion::default();
        motion.watch(Arc::new(Recorder(Arc::clone(&notices))));
        let any = motion.any();
        let run = motion.expect();
        assert!(*any.borrow());
        drop(motion.begin("arm"));
        assert!(*any.borrow(), "the run goes on");
        drop(run);
        assert!(!*any.borrow());
        assert_eq!(*notices.lock(), ["arm", ""]);
    }
}
