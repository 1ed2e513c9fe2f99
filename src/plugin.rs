//! Toolboxes as plugins: finding, checking, loading, running and replacing them.
//!
//! Owns everything that touches a foreign library, and is the only unsafe code of the service. The engine sees none of
//! it: it drives `engine::Toolbox`, which [`InProcess`] implements. Read [`InProcess`] for one toolbox.

mod answer;
mod bytes;
mod control;
mod core;
mod counts;
mod host;
mod host_thread;
mod in_process;
mod journal;
mod load;
pub mod manifest;
mod rate;
mod runs;
mod services;
mod table;
pub mod tools;
mod watchdog;

pub use counts::Counts;
pub use in_process::{InProcess, Open};
pub use load::{Library, LoadError};
pub use services::{HostServices, Limits, Origin, Request};
pub use tools::{DroppedTool, ToolSet};
