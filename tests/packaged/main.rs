//! The toolboxes that come with the service, driven through it: robots, a drone and pipelines, each with what stands in for its hardware.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a failed test panics and prints"
)]

mod drone;
mod gstreamer;
mod page;
mod robot;
mod ros;
mod second_machine;
#[path = "../support/lib.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod support;
