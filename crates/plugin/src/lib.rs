//! Loads one plugin (a `.so`) and serves it as a program.
//!
//! Owns everything that touches a foreign library: the only unsafe code of the service. `main` runs it in the process
//! `toolbox-host`; nothing else of the service uses it. Read [`serve`], then `Plugin`.
#![deny(unsafe_code)]

mod answer;
mod bytes;
mod callbacks;
mod control;
mod host_queue;
mod host_thread;
mod load;
mod log;
mod plugin;
mod runs;
#[cfg(test)]
mod runs_tests;
mod serve;
mod sync;
mod table;
mod toolbox;
mod wake_lock;
mod watchdog;

pub use serve::{play_role, safe_stop, serve};
