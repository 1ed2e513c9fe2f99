//! A toolbox in a process of its own cannot harm anything else: over a real bus, again and again.
//!
//! The short version is part of every test run; `CRASHES=200 MOMENTS=50 cargo test --test isolation_proofs` is the long one
//! (`make proofs`), which takes about half an hour.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails"
)]

#[path = "../support/client.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod client;
mod crashes;
#[path = "../support/fixture.rs"]
mod fixture;
mod moments;
#[path = "../support/process.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod process;
#[path = "../support/python.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod python;
#[path = "../support/scene.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod scene;
#[path = "../support/service.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod service;
#[path = "../support/status.rs"]
mod status;

/// The seed of all random numbers.
const SEED: u64 = 0x000b_0550_0106;

/// A number from the environment, for the long version.
fn number(variable: &str, usually: u64) -> u64 {
    std::env::var(variable).map_or(usually, |number| number.parse().unwrap())
}
