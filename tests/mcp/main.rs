//! The MCP door with real clients from PyPI, in both eras of the protocol and over both transports, against the real service.

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
    pub(crate) mod scene;
    pub(crate) mod service;
}

mod browser;
mod clients;
mod conformance;
mod door;
#[path = "../soak/figures.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod figures;
mod find;
mod forms;
mod frozen;
mod gate;
mod list_size;
mod order;
mod run;
mod sessions;
