//! The doors with their clients, against the real service.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a failed test panics and prints"
)]

mod agent;
mod console;
mod mcp;
mod schedule;
mod started;
mod stop_arguments;
#[path = "../support/lib.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod support;
mod voice;
