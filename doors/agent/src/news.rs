//! The news of a run for its audience: a person at the terminal, or a client on the bus.

use std::sync::Arc;

use client::payload::ProgressMessage;
use serde_json::Value;

use crate::end::End;
use crate::record::Status;

/// An item of news.
#[derive(Debug)]
pub(crate) enum News<'a> {
    /// The run begins.
    Began {
        goal: &'a str,
        tools: usize,
        dry_run: bool,
    },
    /// The model is asked.
    Asking { step: u32, left: &'a Value },
    /// The words of the model.
    Thought(&'a str),
    /// A call is made, or only planned. `waves` are the actions of its plan.
    Call {
        name: &'a str,
        arguments: &'a Value,
        waves: &'a [Vec<String>],
    },
    /// The progress of a call.
    Progress(&'a ProgressMessage),
    /// The outcome of a call.
    CallEnded {
        name: &'a str,
        status: Status,
        text: &'a str,
        ms: u64,
    },
    /// The person at the terminal is asked to confirm a call.
    Ask { text: &'a str },
    /// A call waits for a person elsewhere to confirm it.
    Confirm { text: &'a str, id: &'a str },
    /// The run ends, and the agent brings everything that it moved to safety.
    Ending { end: &'a End },
    /// The run has ended.
    Ended { end: &'a End, left: &'a Value },
}

/// Receives the news. It never blocks for long.
pub(crate) type Audience = Arc<dyn Fn(&News<'_>) + Send + Sync>;
