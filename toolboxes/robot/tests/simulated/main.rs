//! Robots on the simulator: every tool, every plan, every limit, and that a success is what the machine did.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a failed test panics and prints"
)]

#[allow(dead_code, reason = "the helpers serve several test programs")]
#[path = "../support/calls.rs"]
mod calls;
#[allow(dead_code, reason = "the helpers serve several test programs")]
#[path = "../support/catalogue.rs"]
mod catalogue;
#[allow(dead_code, reason = "the helpers serve several test programs")]
#[path = "../support/truth.rs"]
mod truth;

mod bearings;
mod every_tool;
mod files;
mod limits;
mod people;
mod places;
mod plans;
mod schemas;
mod success;
mod wrong_files;
