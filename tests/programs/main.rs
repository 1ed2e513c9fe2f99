//! Programs that are toolboxes: what one that behaves gets, and that one that does not costs only itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a failed test panics and prints"
)]

mod fabric;
mod guarded;
mod hostile;
mod in_rust;
mod life;
mod mounts;
mod ovos;
mod python_toolboxes;
mod scene;
mod several;
mod several_hostile;
mod several_lists;
mod several_python;
mod several_restarts;
mod several_stops;
#[path = "../support/lib.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod support;
