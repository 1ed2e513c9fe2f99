//! The error type of tools.
//!
//! Owns [`ToolError`], the only error type that an author needs. It does not implement `std::error::Error`, so that `?`
//! converts every type that does.

use std::fmt;

use ovos_toolbox_abi::{Status, status};
use ovos_toolbox_wire::{Failure, FailureKind};
use serde_json::Value;

use crate::UnitError;

/// Why a tool, a plan or a command failed.
///
/// `?` converts every `std::error::Error`: the kind is then `ToolError` and the message the chain of causes. A
/// [`Failure`] keeps its own kind and message, and a [`UnitError`] becomes a `ValueError`. Written with serde, it passes from a
/// [`RoleProcess`](crate::RoleProcess) to its toolbox.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ToolError {
    status: Status,
    // Boxed to keep the `Result` of every function small.
    failure: Box<Failure>,
}

impl ToolError {
    /// A failure of the kind `ToolError`. `message` names the thing, what was expected and what to do.
    pub fn msg(message: impl fmt::Display) -> Self {
        Self::new("ToolError", message)
    }

    /// A failure of another kind, in one word, such as `ValueError`: callers see `kind: message`.
    pub fn new(kind: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::with_status(status::ERR, kind, message)
    }

    /// The arguments match the schema but cannot be used. The kind is `ValueError`.
    pub fn bad_args(message: impl fmt::Display) -> Self {
        Self::with_status(status::BAD_ARGS, FailureKind::ValueError, message)
    }

    /// The call is not possible now, because something else uses what it needs. The kind is `BusyError`: callers may try again.
    pub fn busy(message: impl fmt::Display) -> Self {
        Self::with_status(status::BUSY, FailureKind::BusyError, message)
    }

    /// The action was cancelled or halted. The kind is `CancelledError`.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::with_status(status::CANCELLED, FailureKind::CancelledError, "cancelled")
    }

    /// Adds details for programs.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.failure.data = Some(data);
        self
    }

    /// The kind, such as `ValueError`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.failure.kind
    }

    /// The message, without the kind.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.failure.message
    }

    /// Whether the action was cancelled or halted.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.status == status::CANCELLED
    }

    pub(crate) fn with_status(status: Status, kind: impl Into<String>, message: impl fmt::Display) -> Self {
        Self {
            status,
            failure: Box::new(Failure::new(kind, message.to_string())),
        }
    }

    pub(crate) fn unknown_tool(name: &str) -> Self {
        Self::with_status(
            status::UNKNOWN_TOOL,
            "UnknownTool",
            format!("no tool or action {name}"),
        )
    }

    pub(crate) fn panic(payload: Box<dyn std::any::Any + Send>) -> Self {
        Self::with_status(status::PANIC, "Panic", panic_text(payload))
    }

    pub(crate) fn status(&self) -> Status {
        self.status
    }

    pub(crate) fn failure(&self) -> &Failure {
        &self.failure
    }

    /// `{"kind","message","data"?}`.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(&self.failure).unwrap_or_else(|_| {
            r#"{"kind":"ToolError","message":"the error cannot be written as JSON"}"#.into()
        })
    }
}

/// The message of a panic. The payload's own `Drop` may panic, so it is dropped behind a second `catch_unwind`
/// (tests/contract `a_payload_that_panics_in_drop`).
fn panic_text(payload: Box<dyn std::any::Any + Send>) -> String {
    let text = if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_string()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "panicked without a message".to_string()
    };
    if let Err(second) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || drop(payload))) {
        std::mem::forget(second);
    }
    text
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure.fmt(f)
    }
}

impl<E: std::error::Error + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        let any: &dyn std::any::Any = &error;
        if let Some(failure) = any.downcast_ref::<Failure>() {
            return Self {
                status: status::ERR,
                failure: Box::new(failure.clone()),
            };
        }
        if any.is::<UnitError>() {
            return Self::bad_args(error);
        }
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            message.push_str(": ");
            message.push_str(&next.to_string());
            cause = next.source();
        }
        Self::msg(message)
    }
}
