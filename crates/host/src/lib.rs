//! Toolboxes: finding, checking, loading, running and replacing them.
//!
//! Owns everything that touches a foreign library, and is the only unsafe code of the service. The engine sees none of it:
//! it drives `engine::Toolbox`. The folders, each of which uses only those above it:
//!
//! - `contract`: what crosses between a toolbox and the service, as types;
//! - `ffi`: the C table of a toolbox and the threads that call it ([`InProcess`]);
//! - `process`: how processes are started and what they may reach;
//! - `artifact`: which files may be loaded;
//! - `transport`: a toolbox in a process of its own, the default ([`ChildToolbox`]), and the process's side (`serve`);
//! - `lifecycle`: which copies live. Read [`Manager`] first.
#![deny(unsafe_code)]

mod artifact;
mod contract;
mod ffi;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod lifecycle;
mod process;
mod transport;

pub use artifact::file::PluginFile;
pub use artifact::probe::{self, Probe, section_of};
pub use artifact::scan::FailedFile;
pub use contract::hosted::{Death, Hosted};
pub use contract::services::{HostServices, Limits, Origin, Request};
pub use contract::tools::{DroppedTool, ToolSet, UnknownKeys};
pub use ffi::in_process::{InProcess, Open};
pub use ffi::load::{Library, LoadError};
pub use lifecycle::inspect::{self, Inspection, inspect};
pub use lifecycle::manager::Manager;
pub use lifecycle::settings::{ConfigSource, Drain, Isolation, Publish, Settings, ToolboxConfig};
pub use lifecycle::status::{Live, LiveToolbox, ReloadReport, State};
pub use process::confine::Confine;
pub use process::usual::Usual;
pub use protocol::Counts;
pub use transport::child_toolbox::{ChildToolbox, ProcessSettings};
pub use transport::serve;
