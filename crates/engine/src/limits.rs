//! How long and how many: the limits of one toolbox.

use std::time::Duration;

/// The engine's limits for one toolbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of calls that may wait for subsystems.
    pub max_waiting: usize,
    /// How long a call may wait for its subsystems, or for the calls ahead of it to be planned.
    pub max_wait: Duration,
    /// How long a toolbox may take to plan, to conclude, or to answer a resume.
    pub plan: Duration,
    /// The timeout of an action where neither the action nor the tool has one.
    pub default_timeout: Duration,
    /// How long the engine waits for the report of an action's end after it asked the toolbox to end the action.
    pub grace: Duration,
    /// As `grace`, for an action of effect `motion`: a vehicle needs seconds to brake.
    pub settle: Duration,
    /// How long the engine waits for a safe action; then the action is reported as `abandoned`.
    pub safe_limit: Duration,
    /// How long a toolbox may take to confirm a halt.
    pub halt: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_waiting: 64,
            max_wait: Duration::from_secs(30),
            plan: Duration::from_secs(1),
            default_timeout: Duration::from_secs(10),
            grace: Duration::from_millis(500),
            settle: Duration::from_secs(3),
            safe_limit: Duration::from_secs(120),
            halt: Duration::from_millis(200),
        }
    }
}
