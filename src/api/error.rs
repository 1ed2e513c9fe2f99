//! Errors as they appear on the bus.
//!
//! No other module turns refusals and failures into the wire's `error` strings. Strings that the published contract
//! fixes are kept to the letter; `: reason` may follow them. Everything else is `Kind: message`; docs/bus.md lists the kinds.

use ovos_toolbox_wire::{CallOutcome, Conclusion, Failure, FailureKind, Report};
use serde::Serialize;
use serde_json::Value;

use client::payload::{Confirm, ErrorDetail};
use engine::{Cause, PlanError, Refusal, Verdict};
use schema::{Problem, python_type_name};

/// The published text for a tool that is refused because of the latch.
const LATCHED: &str = "Robot is in emergency stop state. Reset required.";

/// An error on its way to the wire.
#[derive(Clone, Debug)]
pub struct WireError {
    /// The text of the key `error`.
    pub text: String,
    /// The text of the key `detail`; boxed, because it is rarely sent.
    pub detail: Box<ErrorDetail>,
    /// How the call can be confirmed, if it waits for a confirmation.
    pub confirm: Option<Box<Confirm>>,
    /// The outcome of a call that was ended before it ran.
    pub(super) outcome: Option<CallOutcome>,
}

impl WireError {
    /// `Kind: message`.
    pub fn new(kind: impl Into<String>, message: impl std::fmt::Display) -> Self {
        let kind = kind.into();
        let text = format!("{kind}: {message}");
        Self::fixed(kind, text)
    }

    /// A text that the published contract fixes.
    pub(super) fn fixed(kind: impl Into<String>, text: impl Into<String>) -> Self {
        let detail = ErrorDetail {
            kind: kind.into(),
            data: None,
            report: None,
        };
        Self {
            text: text.into(),
            detail: Box::new(detail),
            confirm: None,
            outcome: None,
        }
    }

    /// The error of a call that was ended before it ran.
    pub(super) fn ended(cause: &Cause) -> Self {
        let outcome = match cause {
            Cause::EmergencyStop { .. } => CallOutcome::Stopped,
            Cause::TimedOut { .. } => CallOutcome::TimedOut,
            _ => CallOutcome::Cancelled,
        };
        Self {
            outcome: Some(outcome),
            ..Self::new(cause.kind(), cause)
        }
    }

    /// This error as the error of a step of a run.
    pub(super) fn of_step(&self, id: &str) -> Self {
        let kind = &self.detail.kind;
        let text = self.text.strip_prefix(&format!("{kind}: ")).unwrap_or(&self.text);
        Self::new(kind.clone(), format!("step '{id}': {text}"))
    }

    /// The error of a call that waits for a confirmation.
    pub(super) fn to_confirm(confirm: Confirm) -> Self {
        Self {
            confirm: Some(Box::new(confirm.clone())),
            ..Self::new(FailureKind::ConfirmationRequired, confirm.text)
        }
    }

    fn of(failure: &Failure) -> Self {
        let mut error = Self::new(failure.kind.clone(), &failure.message);
        error.detail.data.clone_from(&failure.data);
        error
    }

    fn with_report(mut self, report: &Report) -> Self {
        self.detail.report = Some(report.clone());
        self
    }

    // --- the published texts, in the order in which they are checked

    pub(super) fn missing_name() -> Self {
        Self::fixed(FailureKind::ValueError, "Missing required field: 'name'")
    }

    pub(super) fn unknown_tool(name: &str) -> Self {
        Self::fixed(FailureKind::ValueError, format!("Unknown tool: '{name}'"))
    }

    pub(super) fn unknown_tool_of(name: &str, toolbox_id: &str) -> Self {
        Self::fixed(
            FailureKind::ValueError,
            format!("ValueError: Unknown tool '{name}' for ToolBox '{toolbox_id}'."),
        )
    }

    pub(super) fn arguments_of_type(tool: &str, args: &Value) -> Self {
        let found = python_type_name(args);
        Self::fixed(
            FailureKind::RuntimeError,
            format!(
                "RuntimeError: Tool '{tool}' called with unexpected type arguments: {found}. Must be Dict[str, Any] \
                 or ToolArguments."
            ),
        )
    }

    pub(super) fn invalid_arguments(tool: &str, toolbox_id: &str, problems: &[Problem]) -> Self {
        let text = format!(
            "ValueError: Tool input validation failed for '{tool}' in ToolBox '{toolbox_id}': {}",
            list(problems)
        );
        Self::fixed(FailureKind::ValueError, text)
    }

    pub(super) fn invalid_output(tool: &str, toolbox_id: &str, problems: &[Problem]) -> Self {
        let text = format!(
            "RuntimeError: Tool output validation failed for '{tool}' in ToolBox '{toolbox_id}': {}",
            list(problems)
        );
        Self::fixed(FailureKind::RuntimeError, text)
    }

    pub(super) fn output_of_type(tool: &str, output: &Value) -> Self {
        let found = python_type_name(output);
        Self::fixed(
            FailureKind::RuntimeError,
            format!(
                "RuntimeError: Tool '{tool}' returned an unexpected type: {found}. Must return Dict[str, Any] or \
                 ToolOutput."
            ),
        )
    }

    fn failed(tool: &str, toolbox_id: &str, cause: &Failure) -> Self {
        let mut error = Self::fixed(
            FailureKind::RuntimeError,
            format!("RuntimeError: Tool execution failed for '{tool}' in ToolBox '{toolbox_id}': {cause}"),
        );
        error.detail.data.clone_from(&cause.data);
        error
    }

    // --- refusals and results of the engine

    pub(super) fn refused(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Latched { toolbox_id, stop } => Self::new(
                FailureKind::EmergencyStop,
                format!(
                    "{LATCHED} Toolbox '{toolbox_id}' was stopped by {} ({}); an operator lifts it with \
                     `ovos-tools resume {toolbox_id} {}`",
                    stop.stop_id, stop.reason, stop.stop_id
                ),
            ),
            Refusal::PlanFailed(failure) | Refusal::NeverBegun(failure) => Self::of(failure),
            Refusal::Plan(error @ PlanError::Forbidden { .. }) => {
                Self::new(FailureKind::PermissionError, error)
            }
            Refusal::Plan(error) => Self::new(FailureKind::PlanError, error),
            Refusal::PlanTimeout { .. } | Refusal::TurnTooLong { .. } | Refusal::WaitTooLong { .. } => {
                Self::new(FailureKind::TimeoutError, refusal)
            }
            Refusal::QueueFull { .. }
            | Refusal::TooManyCalls { .. }
            | Refusal::ShareUsedUp { .. }
            | Refusal::RecordTooLong { .. } => Self::new(FailureKind::BusyError, refusal),
            Refusal::NotRecorded { .. } => Self::new(FailureKind::StateError, refusal),
            Refusal::Ended(cause) => Self::ended(cause),
            _ => Self::new(FailureKind::ValueError, refusal),
        }
    }

    /// The error of a call that ran, if its verdict is an error.
    pub(super) fn concluded(
        tool: &str,
        toolbox_id: &str,
        verdict: &Verdict,
        report: &Report,
    ) -> Result<Value, Self> {
        let failed = |failure: &Failure| match report.outcome {
            CallOutcome::Failed if !says_it_all(tool, failure) => Self::failed(tool, toolbox_id, failure),
            _ => Self::of(failure),
        };
        match verdict {
            Verdict::Toolbox(Conclusion::Output(output)) | Verdict::Engine(Conclusion::Output(output)) => {
                Ok(output.clone())
            }
            Verdict::Toolbox(Conclusion::Error(failure)) => Err(Self::of(failure).with_report(report)),
            Verdict::Engine(Conclusion::Error(failure)) => Err(failed(failure).with_report(report)),
        }
    }
}

/// An answer, or `{"error": …}` in its place.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum OrError<T> {
    Good(T),
    Bad { error: String },
}

impl<T> From<Result<T, WireError>> for OrError<T> {
    fn from(result: Result<T, WireError>) -> Self {
        match result {
            Ok(good) => Self::Good(good),
            Err(error) => Self::Bad { error: error.text },
        }
    }
}

/// Whether a failure is sent without a prefix: it says why the tool did not run to its end, or it is a text that the
/// published contract fixes and that OPM itself made in the toolbox.
fn says_it_all(tool: &str, failure: &Failure) -> bool {
    let Failure { kind, message, .. } = failure;
    let about = |text: &str| {
        message
            .strip_prefix(text)
            .is_some_and(|rest| rest.starts_with(&format!("'{tool}'")))
    };
    match kind.parse() {
        Ok(FailureKind::ToolboxCrashed | FailureKind::BusyError) => true,
        Ok(FailureKind::RuntimeError) => [
            "Tool execution failed for ",
            "Tool output validation failed for ",
            "Tool ",
        ]
        .into_iter()
        .any(about),
        Ok(FailureKind::ValueError) => {
            about("Tool input validation failed for ")
                || about("Unknown tool ")
                || message == "Out of range float values are not JSON compliant"
        }
        _ => false,
    }
}

fn list(problems: &[Problem]) -> String {
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
