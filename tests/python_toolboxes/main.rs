//! The toolboxes of a Python interpreter: found, hosted, replaced when packages change; and the published ones held against the
//! published service.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a failed test panics and prints"
)]

mod compare;
mod discovery;
mod life;
mod published;
mod scene;
#[path = "../support"]
#[allow(dead_code, reason = "each test file uses its part")]
mod support {
    pub(crate) mod client;
    pub(crate) mod kernel;
    pub(crate) mod process;
    pub(crate) mod python;
}
#[path = "../support/service_with_bus.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod service_with_bus;
#[path = "../support/status.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod status;

use support::{client, process};
