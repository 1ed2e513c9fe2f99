//! The agent with a model that plays a script, against the real service: goals that are reached, models that misbehave, people who
//! stop it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a failed test panics and prints"
)]

#[path = "../support"]
#[allow(dead_code, reason = "the helpers serve several test programs")]
mod support {
    pub(crate) mod client;
    pub(crate) mod process;
    pub(crate) mod python;
    pub(crate) mod robot;
    pub(crate) mod scene;
    pub(crate) mod service;
}

mod bursts;
mod bus;
mod drone;
mod ends;
mod gstreamer;
mod misbehaving;
mod model;
mod options;
mod order;
mod records;
mod robot;
mod stage;
mod terminal;
