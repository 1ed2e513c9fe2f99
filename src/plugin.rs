//! Toolboxes as plugins: finding, checking, loading, running and replacing them.
//!
//! Owns everything that touches a foreign library, and is the only unsafe code of the service. The engine sees none of
//! it: it drives `engine::Toolbox`, which [`InProcess`] implements. Read [`Manager`] for all toolboxes, [`InProcess`] for
//! one.

mod answer;
mod book;
mod bytes;
pub mod check;
mod child_toolbox;
mod code;
mod confine;
mod control;
mod core;
mod counts;
mod elf;
mod examine;
mod frame;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod host;
mod host_queue;
mod hosted;
mod in_process;
pub mod inspect;
mod journal;
mod json;
mod keeper;
mod load;
mod manager;
pub mod manifest;
mod outlet;
pub mod probe;
mod process_log;
mod rate;
mod reload;
mod runs;
#[cfg(test)]
mod runs_tests;
mod scan;
pub mod serve;
mod services;
mod settings;
mod spawner;
pub mod stage;
mod status;
mod supervise;
mod sync;
mod table;
mod tether;
pub mod tools;
mod wake_lock;
mod watchdog;

pub use child_toolbox::{ChildToolbox, ProcessSettings};
pub use code::PluginFile;
pub use confine::Confine;
pub use counts::Counts;
pub use hosted::{Death, Hosted};
pub use in_process::{InProcess, Open};
pub use inspect::{Inspection, inspect};
pub use load::{Library, LoadError};
pub use manager::Manager;
pub use probe::{Probe, section_of};
pub use services::{HostServices, Limits, Origin, Request};
pub use settings::{ConfigSource, Drain, Isolation, Publish, Settings, ToolboxConfig};
pub use status::{FailedFile, Live, LiveToolbox, ReloadReport, State};
pub use tools::{DroppedTool, ToolSet, UnknownKeys};
