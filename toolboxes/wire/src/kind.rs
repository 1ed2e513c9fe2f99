//! The kinds of failure that the service itself reports.

use serde::Serialize;
use strum::{Display, EnumString, IntoStaticStr, VariantNames};

/// The kinds of failure that the service itself reports; a toolbox may have others. `docs/bus.md` says what each means. On the
/// wire a kind is its name here.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq, EnumString, IntoStaticStr, Serialize, VariantNames)]
pub enum FailureKind {
    /// Several toolboxes have a tool of this name.
    AmbiguousToolError,
    /// Too many calls or requests are under way.
    BusyError,
    /// The call was cancelled, pre-empted or ended by the user's stop.
    CancelledError,
    /// A person has to confirm the call.
    ConfirmationRequired,
    /// The toolbox is in emergency stop state, or was put there during the call.
    EmergencyStop,
    /// A bug of the service.
    InternalError,
    /// The caller may not do this.
    PermissionError,
    /// The toolbox made a plan that cannot be run.
    PlanError,
    /// The tool failed, or returned an invalid result.
    RuntimeError,
    /// The action did not begin, because one before it did not complete.
    SkippedError,
    /// The state of the service could not be written.
    StateError,
    /// Not done in time.
    TimeoutError,
    /// The toolbox was closed or replaced while it ran the call.
    ToolboxClosed,
    /// The toolbox died while it ran the call.
    ToolboxCrashed,
    /// The toolbox does not keep to its side of the interface.
    ToolboxError,
    /// The toolbox panicked.
    ToolboxPanic,
    /// The toolbox is not loaded at the moment.
    ToolboxUnavailable,
    /// The request cannot be used.
    ValueError,
}

impl FailureKind {
    /// The names of all of them, sorted.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;
}

impl From<FailureKind> for String {
    fn from(kind: FailureKind) -> Self {
        <&str>::from(kind).to_owned()
    }
}
