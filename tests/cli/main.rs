//! The command line: the real binary against a scripted service.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics and prints"
)]

mod answers;
mod bus;
mod doctor;
mod emergency;
mod help;
mod install_service;
mod invoke;
mod new;
mod run;
mod scripted;
mod silence;
#[path = "../support/lib.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod support;
