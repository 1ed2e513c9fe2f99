//! Mounted MCP servers through the bus: what one that behaves gets, that one that does not costs only itself, and that no
//! process is left behind.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics and prints"
)]

#[path = "../support"]
#[allow(dead_code, reason = "the helpers serve several test programs")]
mod support {
    pub(crate) mod client;
    pub(crate) mod process;
    pub(crate) mod python;
    pub(crate) mod service;
    pub(crate) mod status;
}

mod calls;
mod ends;
mod http;
mod misbehaviour;
mod names;
mod published;
mod scene;
