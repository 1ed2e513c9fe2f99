//! What a vehicle and its calls report to the outside.

use ovos_toolbox_sdk::prelude::*;

use crate::guard::Caller;

/// Receives what a vehicle reports on its own.
pub(crate) trait Outside: Send + Sync {
    /// An event for the bus.
    fn event(&self, kind: &str, data: Value);
    /// Another party has taken over: the service latches.
    fn latched(&self, reason: &str);
}

/// The service's control over a running call.
pub(crate) trait Gate: Send + Sync {
    /// Runs `send` unless the call was cancelled or halted; returns whether it ran.
    fn command(&self, send: &mut dyn FnMut()) -> bool;
    /// Reports progress, 0 to 1.
    fn progress(&self, fraction: f64, message: &str);
    /// The caller and whether the toolbox is latched.
    fn caller(&self) -> Caller;
    /// Returns content beside the call's answer.
    fn show(&self, _: Content) {}
}
