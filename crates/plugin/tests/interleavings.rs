//! Every interleaving of what ends a run, on the table of runs itself, explored with loom.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

#[path = "../src/runs.rs"]
#[allow(dead_code, unreachable_pub, reason = "the crate uses all of it")]
mod runs;

/// What `runs.rs` names as `crate::sync`, with loom's lock.
mod sync {
    pub(crate) use loom::sync::{Mutex, MutexGuard};
}

use program::Counters;
use program::payload::Shown;
use protocol::{Raw, RunEnd};
use runs::Runs;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;
use ovos_toolbox_wire::Failure;

const RUN: u64 = 1;

/// Something that ends a run, or tries to; true when it took the right to.
type Ender = fn(&Runs) -> bool;

fn complete(runs: &Runs) -> bool {
    let on_end = runs.take(RUN);
    let taken = on_end.is_some();
    if let Some(on_end) = on_end {
        on_end(RunEnd::Output(Raw::of(&serde_json::Value::Null)), None);
    }
    taken
}

fn cancel(runs: &Runs) -> bool {
    if let Some(on_end) = runs.cancel(RUN) {
        on_end(RunEnd::Cancelled, None);
    }
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
        let runs = Arc::new(Runs::new(0, Arc::new(Counters::default())));
        let count = Arc::new(AtomicUsize::new(0));
        let ends = count.clone();
        let on_end = Box::new(move |_: RunEnd, _: Shown| _ = ends.fetch_add(1, Ordering::SeqCst));
        assert!(runs.register(RUN, 0, None, on_end), "a fresh run");
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
        assert_eq!(
            count.load(Ordering::SeqCst),
            1,
            "the call is told once that its run has ended"
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
