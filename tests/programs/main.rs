//! Programs that are toolboxes: what one that behaves gets, and that one that does not costs only itself.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics and prints"
)]

#[path = "../support/client.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod client;
mod guarded;
mod hostile;
mod in_rust;
#[path = "../support/kernel.rs"]
mod kernel;
mod life;
#[path = "../support/process.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod process;
#[path = "../support/python.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod python;
mod scene;
#[path = "../support/service_with_bus.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod service_with_bus;
mod several;
mod several_hostile;
mod several_lists;
mod several_python;
mod several_restarts;
mod several_stops;
#[path = "../support/status.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod status;
