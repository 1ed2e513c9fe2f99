//! Every interleaving of stops, resumes and starts on the latch itself, and of everything that ends a run on the table of
//! runs itself, explored with loom.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

/// What the files below name as `super::sync`, as loom's types.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard};
}

#[path = "../src/engine/latch.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the file belongs to the library, which uses all of it"
)]
mod latch;

#[path = "../src/plugin/counts.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the file belongs to the library, which uses all of it"
)]
mod counts;

#[path = "../src/plugin/runs.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    clippy::result_large_err,
    reason = "the file belongs to the library, which uses all of it"
)]
mod runs;

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
            // As the engine does: looks, asks the toolbox, lifts.
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
fn what_was_admitted_before_a_stop_is_void_once_the_stop_has_returned() {
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
            // The order in which a start looks: first at what it can know of the stop, then at its own epoch.
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
fn nobody_is_admitted_with_the_epoch_of_a_stop_that_still_holds() {
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
            // Before the stop, or after the resume; nothing else is current.
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

/// What the runs name as the engine's.
mod engine {
    pub(crate) use ovos_tools::engine::{Ended, Halt, ProgressSink, RunId};
}

mod completions {
    use std::sync::Arc;

    use futures_util::FutureExt;
    use loom::thread;
    use ovos_toolbox_wire::{Completion, Failure};

    use crate::counts::Counters;
    use crate::engine::{Ended, RunId};
    use crate::runs::Runs;

    const RUN: u64 = 1;

    /// Something that ends a run, or tries to; true when it took the right to.
    type Ender = fn(&Runs) -> bool;

    fn complete(runs: &Runs) -> bool {
        let ending = runs.take(RUN);
        let taken = ending.is_some();
        if let Some(ending) = ending {
            ending.send(Ended::Reported(Completion::Output(serde_json::Value::Null)));
        }
        taken
    }

    fn cancel(runs: &Runs) -> bool {
        runs.cancel(RUN);
        false
    }

    fn lose(runs: &Runs) -> bool {
        runs.lose(&Failure::new("ToolboxCrashed", "a test"));
        false
    }

    fn begin(runs: &Runs) -> bool {
        if runs.begin(RUN) {
            runs.returned(RUN, Ok(()));
        }
        false
    }

    /// However these interleave, the run ends at most once, and it has ended when one of them was bound to end it.
    fn check(enders: &[Ender], begun: bool) {
        let enders = enders.to_vec();
        loom::model(move || {
            let runs = Runs::new(0, Arc::new(Counters::default()));
            let waiting = runs.register(RunId(RUN), 0, None).expect("a fresh run");
            if begun {
                assert!(runs.begin(RUN));
                runs.returned(RUN, Ok(()));
            }
            let threads: Vec<_> = enders
                .iter()
                .map(|&ender| {
                    let runs = runs.clone();
                    thread::spawn(move || ender(&runs))
                })
                .collect();
            let taken = threads.into_iter().map(|thread| thread.join().unwrap());
            let taken = taken.filter(|taken| *taken).count();
            assert!(taken <= 1, "the run was completed {taken} times");
            complete(&runs);
            runs.lose(&Failure::new("ToolboxClosed", "the end of the test"));
            assert_eq!(runs.open(), 0, "the run is still open");
            assert!(
                waiting.now_or_never().is_some(),
                "the call was not told that its run has ended"
            );
        });
    }

    #[test]
    fn a_run_ends_exactly_once_however_its_ends_race() {
        let rows: [(&[Ender], bool); 5] = [
            (&[complete, complete], true),
            (&[complete, cancel, lose], true),
            (&[complete, lose], true),
            (&[begin, cancel, complete], false),
            (&[begin, lose], false),
        ];
        for (enders, begun) in rows {
            check(enders, begun);
        }
    }
}
