//! What a client of the bus relies on: the published contract with the published packages, our additions to it, and the schemas of
//! both.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a failed test panics and prints"
)]

mod agents;
mod api;
mod interop;
mod schemas;
#[path = "../support/lib.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod support;
mod vendor_types;
