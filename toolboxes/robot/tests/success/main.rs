//! A success is what the machine did: every tool on every kind of robot, with every way in which the machine can fail.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed test panics and prints"
)]

#[allow(dead_code, reason = "the helpers serve several test programs")]
#[path = "../support/catalogue.rs"]
mod catalogue;
#[allow(dead_code, reason = "the helpers serve several test programs")]
#[path = "../support/servos.rs"]
mod servos;
#[path = "../support/truth.rs"]
mod truth;

mod feetech;
mod people;
mod sim;
