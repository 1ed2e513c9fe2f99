//! The tools API: the requests of bus clients, and the answer to each.
//!
//! Each topic family has a file. A request is answered with exactly one frame, or with none where the contract
//! prescribes silence. Nothing here opens a socket, loads a library or runs an action. No other module maps outcomes
//! to the wire. Read [`Api::handle`].

mod actions;
mod answer;
mod arguments;
mod cancel;
mod discover;
mod error;
mod export;
mod handle;
mod invoke;
mod keys;
mod list;
mod list_cache;
mod lists;
mod memory_budget;
mod missing_tool;
mod outbox;
mod pages;
mod permit;
mod plan;
mod progress;
mod record;
mod redaction;
mod refuse;
mod reload;
mod request;
mod resolve;
mod run;
mod run_course;
mod sentence;
mod settings;
mod state;
mod status;
mod steps;
#[cfg(test)]
mod steps_tests;
mod stop;
mod toolboxes;
mod topic;

pub use client::payload::{
    BusStatus, EventMessage, FailedFile, IsReady, PythonStatus, ReloadOutcome, ServiceStatus, StatusResponse,
    ToolboxStatus,
};
pub use error::WireError;
pub use outbox::Outbox;
pub(crate) use refuse::instead;
pub use request::Request;
pub use settings::Settings;
pub use state::Api;
pub use toolboxes::Toolboxes;
pub use topic::{SERVICE_NAME, Topic, Urgent};
