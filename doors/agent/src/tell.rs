//! What a run tells those who watch it: a person at the terminal, or a client on the bus.

use std::sync::Arc;

use client::payload::ProgressMessage;
use serde_json::Value;

use crate::end::End;
use crate::record::Status;

/// A piece of news of a run.
#[derive(Debug)]
pub(crate) enum Tell<'a> {
    /// It begins.
    Began {
        goal: &'a str,
        tools: usize,
        dry_run: bool,
    },
    /// The model is asked.
    Asking { step: u32, left: &'a Value },
    /// What the model says.
    Thought(&'a str),
    /// A call is made, or only planned; `waves` are the actions of its plan.
    Call {
        name: &'a str,
        arguments: &'a Value,
        waves: &'a [Vec<String>],
    },
    /// How far a call is.
    Progress(&'a ProgressMessage),
    /// What became of a call.
    Came {
        name: &'a str,
        status: Status,
        text: &'a str,
        ms: u64,
    },
    /// The person at the terminal is asked.
    Ask { text: &'a str },
    /// A call waits for a person elsewhere.
    Confirm { text: &'a str, id: &'a str },
    /// It ends, and what it moved is brought to safety.
    Ending { end: &'a End },
    /// It has ended.
    Ended { end: &'a End, left: &'a Value },
}

/// Who watches. Never blocks for long.
pub(crate) type Audience = Arc<dyn Fn(&Tell<'_>) + Send + Sync>;
