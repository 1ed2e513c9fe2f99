//! The toolbox with the published mavsdk_server and a simulated vehicle, on real time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a failed test panics and prints, and the output says what was skipped"
)]

mod catalogue;
#[path = "../support/hostile.rs"]
mod hostile;
mod limits;
mod mission;
mod outage;
mod protos;
mod quirks;
mod random_calls;
#[path = "../support/rig.rs"]
mod rig;
mod stops;
mod takeover;
