//! Tests of [`runs`](crate::runs), beside it rather than in it: `tests/interleavings.rs` compiles that file on its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, mpsc};

use ovos_toolbox_wire::Failure;
use protocol::{Raw, RunEnd};

use crate::runs::*;
use program::Halt;

fn runs() -> Runs {
    Runs::new(0, std::sync::Arc::default())
}

/// Registers a run; every end of it that is reported comes out of the channel.
fn register(runs: &Runs, run: u64, epoch: u64) -> mpsc::Receiver<RunEnd> {
    let (sender, receiver) = mpsc::channel();
    assert!(runs.register(
        run,
        epoch,
        None,
        Box::new(move |end, _| sender.send(end).unwrap())
    ));
    receiver
}

fn output() -> RunEnd {
    RunEnd::Output(Raw::of(&serde_json::Value::Null))
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
        let receiver = register(&runs, run, 0);
        assert!(runs.begin(run));
        let (start, winners) = (Barrier::new(3), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    if let Some(on_end) = runs.take(run) {
                        winners.fetch_add(1, Ordering::Relaxed);
                        on_end(output(), None);
                    }
                });
            }
            scope.spawn(|| {
                start.wait();
                drop(runs.returned(run, Err(Failure::new("E", "refused"))));
            });
        });
        let ends: Vec<RunEnd> = receiver.try_iter().collect();
        assert!(
            matches!(&ends[..], [RunEnd::Output(_) | RunEnd::Error(_)]),
            "{ends:?}"
        );
        assert!(winners.into_inner() <= 1);
    }
    assert_eq!(runs.open(), 0);
}

#[test]
fn a_stop_and_a_start_never_miss_each_other() {
    let runs = runs();
    for run in 1..=500 {
        let receiver = register(&runs, run, run - 1);
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
        // The run began before the stop and was halted again, or it ended before the stop; or it never began.
        assert!(began || (again.halts.is_empty() && matches!(receiver.try_recv(), Ok(RunEnd::Cancelled))));
        assert!(!runs.begin(run) || began);
    }
}

#[test]
fn halts_during_a_start_are_kept_and_never_grow_without_end() {
    let runs = runs();
    let _told = register(&runs, 1, 0);
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
