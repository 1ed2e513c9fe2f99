//! Toolboxes: finding, checking, loading, running and replacing them.
//!
//! Owns the processes of toolboxes, and loads no library itself. The engine sees none of it: it drives `engine::Toolbox`. The
//! folders, each of which uses only those above it:
//!
//! - `contract`: what crosses between a toolbox and the service, as types;
//! - `process`: how processes are started and what they may reach;
//! - `artifact`: which files may be loaded;
//! - `transport`: a toolbox as the engine uses it ([`Hosted`]), in a process of its own;
//! - `state`: what outlives the process: stops, and what moves;
//! - `lifecycle`: which copies live. Read [`Manager`] first.
//!
//! ```
//! // The plugin files of two folders; what is not there is no error, what cannot be read is.
//! let (files, failed) = ovos_tools_host::scan(&["/opt/plugins".into(), "/nowhere".into()]);
//! assert!(files.iter().all(|file| file.extension().is_some_and(|ending| ending == "so")));
//! println!("{} files, {} that cannot be read", files.len(), failed.len());
//! ```
#![forbid(unsafe_code)]

mod artifact;
mod contract;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod lifecycle;
mod process;
pub mod state;
mod transport;

pub use artifact::file::PluginFile;
pub use artifact::greeter::{self, Greeter, section_of};
pub use artifact::python;
pub use artifact::scan::{FailedFile, scan};
pub use contract::services::{HostServices, Limits, Open, Origin, Request};
pub use contract::tools::{DroppedTool, ToolSet, UnknownKeys};
pub use lifecycle::door_keeper::{DoorKeeper, DoorReport};
pub use lifecycle::inspect::{self, Counterpart, Inspection, inspect, inspect_own, inspect_program};
pub use lifecycle::manager::Manager;
pub use lifecycle::settings::{
    Admission, ConfigSource, Drain, ProgramSource, Publish, PythonSource, Settings, ToolboxSettings,
};
pub use lifecycle::status::{Live, LiveToolbox, NotAdmitted, Off, ReloadReport, State};
pub use process::confine::{confine_greeting, enter, why_unconfined};
pub use process::descriptors;
pub use process::program_host::{ProgramTask, become_program};
pub use protocol::Counts;
pub use section::{Confine, ProgramConfig, PythonConfig, Switch, ToolboxConfig};
pub use transport::child::ProcessSettings;
pub use transport::greeting::greet;
pub use transport::hosted::Hosted;
pub use transport::peer::Death;
