//! Calls, reloads, crashes, bus restarts and stops, mixed at random, for a while: every call is answered exactly
//! once, and nothing leaks.
//!
//! A minute of it is part of every test run; `make soak` runs twenty. `SOAK_SECONDS` is the duration, `SOAK_SEED` the
//! random seed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails"
)]

mod callers;
mod mix;
#[path = "../support/lib.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod support;

use std::thread;
use std::time::{Duration, Instant};

use callers::{CALLERS, Pace, Seen, caller};
use mix::Stage;
use support::figures::Figures;

fn number(variable: &str, usually: u64) -> u64 {
    std::env::var(variable).map_or(usually, |number| number.parse().unwrap())
}

#[test]
fn a_mix_of_everything_loses_no_call_and_leaves_nothing_behind() {
    let seed = number("SOAK_SEED", 0x000b_0550_0106);
    let time = Duration::from_secs(number("SOAK_SECONDS", 60));
    println!("soak: {} s with seed {seed}", time.as_secs());
    let mut stage = Stage::new(seed);
    let pace = Pace::default();
    let (seen, warm) = thread::scope(|threads| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|number| {
                let (pace, port) = (&pace, stage.port());
                threads.spawn(move || caller(number, seed, port, pace))
            })
            .collect();
        // The callers end with the mix, also if it fails.
        let _over = pace.over_on_drop();
        let fresh = stage.figures();
        println!("soak: fresh      {fresh}");
        // Pools, caches and buffers reach their sizes first.
        let start = Instant::now();
        let mut warm: Option<Figures> = None;
        while start.elapsed() < time || warm.is_none() {
            stage.step(&pace);
            assert!(
                !callers.iter().any(thread::ScopedJoinHandle::is_finished),
                "a caller gave up after {:?}",
                stage.done()
            );
            if warm.is_none() && start.elapsed() > time / 4 {
                let quiet = pace.pause();
                let figures = stage.settle(None);
                println!("soak: at start   {figures}");
                warm = Some(figures);
                drop(quiet);
            }
        }
        drop(_over);
        let seen: Vec<Seen> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
        (seen, warm.expect("it was measured"))
    });
    stage.check_books();
    let end = stage.settle(Some(&warm));
    println!("soak: at end     {end}");
    let calls: usize = seen.iter().map(|seen| seen.calls).sum();
    let disturbed: usize = seen.iter().map(|seen| seen.disturbed).sum();
    println!(
        "soak: {calls} calls of {CALLERS} clients answered once each ({disturbed} with the crash or stop of their toolbox), beside {}",
        stage.done()
    );
    stage.check_log();
    assert!(calls > 0);
}
