//! The JSON that crosses the toolbox boundary, as Rust types.
//!
//! Owns the shapes (one JSON Schema each in `schemas/abi/`), and nothing else: no IO, no threads, no
//! policy. The service and the SDK both speak these types, so neither can drift from the other. Unknown keys are
//! ignored and a missing optional key means its default, so either side may be older than the other.
//! Read [`Action`] and [`Report`] first.

mod action;
mod manifest;
mod outcome;
mod report;
mod tool;

pub use action::{Action, ActionIdentity, CallIdentity, Plan, Start};
pub use manifest::{Manifest, is_requestable, is_subscribable, is_toolbox_id};
pub use outcome::{Completion, Conclusion, Event, Failure, Progress, Severity};
pub use report::{ActionReport, CallOutcome, Outcome, Report};
pub use tool::{Effect, ToolDefinition, ToolList};

/// A JSON object, in the order it was written.
pub type Object = serde_json::Map<String, serde_json::Value>;

/// The exported symbol of a toolbox; the major version of the boundary is part of its name.
pub const ENTRY_SYMBOL: &str = "toolbox_entry_v1";
