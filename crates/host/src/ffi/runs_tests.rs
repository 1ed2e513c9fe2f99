//! Tests of [`runs`](crate::ffi::runs), beside it rather than in it: `tests/interleavings.rs` compiles that file on its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use futures_util::FutureExt;
use ovos_toolbox_wire::{Completion, Failure};

use crate::ffi::runs::*;
use engine::{Ended, Halt, RunId};

fn runs() -> Arc<Runs> {
    Runs::new(0, Arc::default())
}

fn output() -> Ended {
    Ended::Reported(Completion::Output(serde_json::Value::Null))
}

fn halt(emergency: bool, stop_epoch: u64) -> Halt {
    Halt {
        subsystems: vec!["all".to_owned()],
        emergency,
        stop_epoch,
    }
}

#[test]
fn a_run_ends_once_however_many_want_to_end_it() {
    let runs = runs();
    for run in 1..=500 {
        let waiting = runs.register(RunId(run), 0, None).unwrap();
        assert!(runs.begin(run));
        let (start, winners) = (Barrier::new(3), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    if let Some(ending) = runs.take(run) {
                        winners.fetch_add(1, Ordering::Relaxed);
                        ending.send(output());
                    }
                });
            }
            scope.spawn(|| {
                start.wait();
                drop(runs.returned(run, Err(Failure::new("E", "refused"))));
            });
        });
        assert!(matches!(waiting.now_or_never(), Some(Ended::Reported(_))));
        assert!(winners.into_inner() <= 1);
    }
    assert_eq!(runs.open(), 0);
}

#[test]
fn a_stop_and_a_start_never_miss_each_other() {
    let runs = runs();
    for run in 1..=500 {
        let waiting = runs.register(RunId(run), run - 1, None).unwrap();
        let start = Barrier::new(2);
        let (began, again) = std::thread::scope(|scope| {
            let host = scope.spawn(|| {
                start.wait();
                let began = runs.begin(run);
                (
                    began,
                    if began {
                        runs.returned(run, Ok(()))
                    } else {
                        Again::default()
                    },
                )
            });
            start.wait();
            runs.halt(&halt(true, run));
            host.join().unwrap()
        });
        // It began before the stop and is halted again or was over before the stop; or it never began.
        assert!(
            began || (again.halts.is_empty() && matches!(waiting.now_or_never(), Some(Ended::Cancelled)))
        );
        assert!(!runs.begin(run) || began);
    }
}

#[test]
fn halts_during_a_start_are_kept_and_never_grow_without_end() {
    let runs = runs();
    let _waiting = runs.register(RunId(1), 0, None).unwrap();
    assert!(runs.begin(1));
    for _ in 0..3 {
        runs.halt(&halt(false, 0));
    }
    for arm in 0..100 {
        runs.halt(&Halt {
            subsystems: vec![format!("arm_{arm}")],
            emergency: arm == 50,
            stop_epoch: 1,
        });
    }
    let again = runs.returned(1, Ok(()));
    assert!(again.halts.len() <= MAX_HALTS, "{again:?}");
    assert!(
        again.halts.iter().any(|h| h.emergency && h.subsystems == ["all"]),
        "{again:?}"
    );
}
