//! What it costs to make the graph of each tool, through the toolbox's C table: arguments as text in, actions as text out.
//!
//! Run it with `cargo bench -p robot --bench plans`.
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]
#![allow(
    clippy::expect_used,
    missing_docs,
    reason = "a bench that cannot run has no figures"
)]

#[path = "../tests/support/calls.rs"]
mod calls;

use std::time::Instant;

use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::json;

/// Figures are the median of this many rounds.
const ROUNDS: usize = 15;
const CALLS: u32 = 200;
const GOAL_US: f64 = 20.0;

fn main() {
    // `cargo test --benches` only wants to know that it runs.
    let rounds = if std::env::args().any(|argument| argument == "--test") {
        1
    } else {
        ROUNDS
    };
    let robot = Harness::open::<Robots>(json!({})).expect("the simulator opens");
    let mut figures: Vec<(f64, String)> = calls::calls()
        .into_iter()
        .map(|(tool, args)| {
            let mut times: Vec<f64> = (0..rounds)
                .map(|_| {
                    let begun = Instant::now();
                    for _ in 0..CALLS {
                        let plan = robot.plan(tool, args.clone());
                        std::hint::black_box(plan).expect("it is planned");
                    }
                    begun.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS)
                })
                .collect();
            times.sort_by(f64::total_cmp);
            (times[times.len() / 2], format!("{tool} {args}"))
        })
        .collect();
    figures.sort_by(|a, b| b.0.total_cmp(&a.0));
    println!("graph of a tool, with its JSON both ways (goal: under {GOAL_US} us each)");
    for (us, call) in figures.iter().take(5) {
        let met = if *us < GOAL_US { "met" } else { "MISSED" };
        println!("  {us:6.1} us  {met:6}  {call}");
    }
    if let Some((us, _)) = figures.get(figures.len() / 2) {
        println!("  {us:6.1} us          median of {} calls", figures.len());
    }
}
