//! The promises of a toolbox's life, what its process survives, and that it cannot harm anything else.
//!
//! The short version is part of every test run; `CRASHES=200 MOMENTS=50 cargo test --test process_isolation` is the long one
//! (`make proofs`), which takes about half an hour.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed test panics and prints"
)]

mod check;
mod confine;
mod copies;
mod crashes;
mod halts;
mod hostile;
mod lanes;
mod messages;
mod misbehaviour;
mod moments;
mod motion;
mod open_toolbox;
mod reload;
mod restarts;
mod service;
#[path = "../support/lib.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod support;

/// The seed of all random numbers.
const SEED: u64 = 0x000b_0550_0106;

/// A number from the environment, for the long version.
fn repeated(variable: &str, usually: u64) -> u64 {
    std::env::var(variable).map_or(usually, |times| times.parse().unwrap())
}
