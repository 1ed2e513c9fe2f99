//! All interleavings of stops, resumes and starts on the latch, explored with loom.
/// Loom's types for the names that the files below import from `super::sync`.
mod sync {
    pub(crate) use loom::sync::Mutex;
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
}

#[path = "../../src/latch.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the file belongs to the library, which uses all of it"
)]
mod latch;

use latch::{Latch, LiftError, StopRecord};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::thread;

fn record(stop_id: &str) -> StopRecord {
    StopRecord {
        stop_id: stop_id.to_owned(),
        reason: "a test".to_owned(),
    }
}

#[test]
fn an_older_resume_never_lifts_a_newer_stop() {
    loom::model(|| {
        let latch = Arc::new(Latch::new(None));
        latch.stop(record("old"));
        let stopper = {
            let latch = latch.clone();
            thread::spawn(move || latch.stop(record("new")))
        };
        let lifter = {
            let latch = latch.clone();
            // The order of the engine: it checks, asks the toolbox, and lifts.
            thread::spawn(move || {
                latch.check("old")?;
                latch.lift("old")
            })
        };
        stopper.join().unwrap();
        let lifted = lifter.join().unwrap();
        assert_eq!(latch.holder(), Some(record("new")), "the resume gave {lifted:?}");
        if let Err(error) = lifted {
            let (given, current) = ("old".to_owned(), "new".to_owned());
            assert_eq!(error, LiftError::OtherStop { given, current });
        }
    });
}

#[test]
fn an_admission_from_before_a_stop_is_void_after_the_stop() {
    loom::model(|| {
        let latch = Arc::new(Latch::new(None));
        let returned = Arc::new(AtomicBool::new(false));
        let stopper = {
            let (latch, returned) = (latch.clone(), returned.clone());
            thread::spawn(move || {
                latch.stop(record("a"));
                returned.store(true, Ordering::Release);
            })
        };
        if let Ok(epoch) = latch.admit() {
            // The order of a start: it learns of the stop first, and then checks its own epoch.
            let stopped = returned.load(Ordering::Acquire);
            assert!(
                !(stopped && latch.is_current(epoch)),
                "a start slipped past a stop that had returned"
            );
        }
        stopper.join().unwrap();
    });
}

#[test]
fn no_call_is_admitted_with_the_epoch_of_a_stop_that_still_holds() {
    loom::model(|| {
        let latch = Arc::new(Latch::new(None));
        let raised = Arc::new(AtomicU64::new(0));
        let stopper = {
            let (latch, raised) = (latch.clone(), raised.clone());
            thread::spawn(move || raised.store(latch.stop(record("a")), Ordering::SeqCst))
        };
        let admitted = {
            let latch = latch.clone();
            thread::spawn(move || latch.admit())
        };
        stopper.join().unwrap();
        let raised = raised.load(Ordering::SeqCst);
        match admitted.join().unwrap() {
            Ok(epoch) => assert!(epoch < raised && !latch.is_current(epoch)),
            Err(stop) => assert_eq!(stop, record("a")),
        }
        assert!(latch.admit().is_err());
    });
}

#[test]
fn a_call_admitted_before_a_stop_stays_void_after_the_resume() {
    loom::model(|| {
        let latch = Arc::new(Latch::new(None));
        let caller = {
            let latch = latch.clone();
            thread::spawn(move || latch.admit())
        };
        let raised = latch.stop(record("a"));
        latch.lift("a").unwrap();
        match caller.join().unwrap() {
            // Admitted before the stop or after the resume; only the latter epoch is current.
            Ok(epoch) => assert_eq!(latch.is_current(epoch), epoch == raised),
            Err(stop) => assert_eq!(stop, record("a")),
        }
        assert_eq!(latch.admit(), Ok(raised));
    });
}

#[test]
fn two_stops_at_once_raise_two_epochs_and_one_of_them_holds() {
    loom::model(|| {
        let latch = Arc::new(Latch::new(None));
        let other = {
            let latch = latch.clone();
            thread::spawn(move || latch.stop(record("a")))
        };
        let mine = latch.stop(record("b"));
        let theirs = other.join().unwrap();
        assert_eq!(mine.min(theirs) + 1, mine.max(theirs));
        let last = if mine > theirs { "b" } else { "a" };
        assert_eq!(latch.holder(), Some(record(last)));
        assert_eq!(latch.epoch(), mine.max(theirs));
    });
}
