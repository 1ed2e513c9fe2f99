//! How runs, starts and toolboxes end, as a test sees it.

use ovos_toolbox_abi::{Status, status};
use ovos_toolbox_wire::{Complete, Content, Failure};
use serde_json::Value;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutcome {
    /// One of the values of [`ovos_toolbox_abi::status`].
    pub status: Status,
    /// The completion as received: `{"output": ..., "content"?: [...]}` or `{"error": ...}`.
    pub text: String,
}

impl RunOutcome {
    /// The output, or why there is none.
    ///
    /// # Errors
    /// The run did not complete.
    ///
    /// # Panics
    /// The completion violates toolbox.h.
    pub fn result(&self) -> Result<Value, Failure> {
        match serde_json::from_str(&self.text) {
            Ok(Complete::Done { output, .. }) if self.status == status::OK => Ok(output),
            Ok(Complete::Failed { error }) if self.status != status::OK => Err(error),
            _ => panic!("status {} does not go with {}", self.status, self.text),
        }
    }

    /// The content beside the output.
    #[must_use]
    pub fn content(&self) -> Vec<Content> {
        match serde_json::from_str(&self.text) {
            Ok(Complete::Done { content, .. }) => content,
            _ => Vec::new(),
        }
    }
}

/// Why a start was refused, or open failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// One of the values of [`ovos_toolbox_abi::status`].
    pub status: Status,
    /// The reason.
    pub failure: Box<Failure>,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (status {})", self.failure, self.status)
    }
}

impl std::error::Error for Refused {}

/// What a toolbox left behind when it was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseReport {
    /// Runs that were accepted and never completed; must be empty.
    pub unfinished: Vec<u64>,
    /// Completions of runs that had completed or were never started; must be 0.
    pub stray_completions: usize,
    /// Host functions called after close had returned, so far; must be 0.
    pub calls_after_close: usize,
}

impl CloseReport {
    /// Whether the toolbox kept the contract.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.unfinished.is_empty() && self.stray_completions == 0 && self.calls_after_close == 0
    }
}
