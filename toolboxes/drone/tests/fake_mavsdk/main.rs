//! The toolbox with the in-process MAVSDK and the vehicle model of px4-sim, on virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a failed test panics and prints, and the output says what was skipped"
)]

mod after_takeover;
mod answers;
mod approach;
mod batteries;
mod disturbances;
#[path = "../support/fake_mavsdk.rs"]
mod fake_mavsdk;
mod fence_stays;
mod fidelity;
mod guard_rows;
mod heard;
mod heights;
#[path = "../support/hostile.rs"]
mod hostile;
mod late_steps;
mod lines;
mod mode_changes;
mod mode_lag;
mod next_flight;
mod operators;
#[path = "../support/paused.rs"]
mod paused;
mod random_calls;
mod random_missions;
mod recognition;
mod reserve;
mod rest;
mod run_log;
mod schemas;
mod success;
