//! The service on a bus: how it starts, serves, reloads, stops and ends, what it remembers, and what it refuses.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a failed test panics and prints"
)]

mod announcement;
mod bus_choice;
mod bus_loss;
mod configuration;
mod emergency_stop;
mod facts;
mod faults;
mod load;
mod logs;
mod order;
mod policy;
mod reload;
mod run;
mod shutdown;
mod stalled_disk;
mod start;
mod state;
#[path = "../support/lib.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod support;
mod user_stop;
