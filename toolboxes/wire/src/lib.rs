//! The JSON that crosses the toolbox boundary, as Rust types.
//!
//! Owns only the shapes (one JSON Schema each in `schemas/abi/`): no IO, no threads, no policy. The service and the SDK
//! share these types, so that they cannot diverge. Unknown keys are ignored and a missing optional key means its
//! default, so either side may be older than the other. Read [`Action`] and [`Report`] first.
#![doc = include_str!("../README.md")]

mod action;
mod content;
mod kind;
mod manifest;
mod object;
mod outcome;
mod report;
mod tool;

pub use action::{Action, ActionIdentity, CallIdentity, Plan, Start};
pub use content::{Content, ContentKind};
pub use kind::FailureKind;
pub use manifest::{Manifest, is_requestable, is_subscribable, is_toolbox_id};
pub use object::Object;
pub use outcome::{Complete, Completion, Conclusion, Event, Failure, Progress, Severity};
pub use report::{ActionReport, CallOutcome, Outcome, Report};
pub use tool::{Audience, Effect, ToolDefinition, ToolList};

/// The exported symbol of a toolbox; its name contains the major version of the boundary.
pub const ENTRY_SYMBOL: &str = "toolbox_entry_v1";

/// The symbol that a toolbox with processes of its own exports, too.
pub const ROLE_SYMBOL: &str = "toolbox_role_v1";
