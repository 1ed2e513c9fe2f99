//! The voice door against local servers of the speech services' protocols, on the real service.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed test panics and prints"
)]

#[path = "../support"]
#[allow(dead_code, reason = "the helpers serve several test programs")]
mod support {
    pub(crate) mod client;
    pub(crate) mod process;
    pub(crate) mod python;
    pub(crate) mod scene;
    pub(crate) mod service;
}

mod bus;
mod calls;
mod cuts;
mod deadman;
mod joins;
mod openai;
mod order;
mod speech;
mod stage;
mod vendors;
