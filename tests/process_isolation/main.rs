//! The promises of a toolbox's life, and what its process survives.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

mod check;
mod confine;
#[path = "../support/copies.rs"]
mod copies;
#[path = "../support/fixture.rs"]
mod fixture;
#[path = "../support/halts.rs"]
mod halts;
mod hostile;
#[path = "../support/kernel.rs"]
mod kernel;
mod lanes;
mod messages;
#[path = "../support/misbehaviour.rs"]
mod misbehaviour;
mod motion;
#[path = "../support/open_toolbox.rs"]
mod open_toolbox;
#[path = "../support/process.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod process;
#[path = "../support/reload.rs"]
mod reload;
mod restarts;
#[path = "../support/rig.rs"]
mod rig;
mod service;
#[path = "../support/service_with_bus.rs"]
mod service_with_bus;

/// How often a test breaks something: `CRASHES=200 MOMENTS=50` for the long version.
fn repeated(variable: &str, usually: u64) -> u64 {
    std::env::var(variable).map_or(usually, |times| times.parse().unwrap())
}
