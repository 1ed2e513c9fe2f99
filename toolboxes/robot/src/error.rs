//! Why an action was not done, and how callers see it.

use std::time::Duration;

use ovos_toolbox_sdk::ToolError;

/// Why an action was not done.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ActionError {
    /// The robot lacks the part.
    #[error("not supported by {robot}: {what}")]
    NotSupported {
        /// The robot's name in the configuration.
        robot: String,
        /// What it cannot do.
        what: String,
    },
    /// The machine is away.
    #[error("{robot} is not connected: {reason}")]
    NotConnected {
        /// The robot's name.
        robot: String,
        /// Why, and what to look at.
        reason: String,
    },
    /// The action was cancelled or halted.
    #[error("cancelled")]
    Cancelled,
    /// The robot is in emergency stop.
    #[error("Robot is in emergency stop state. Reset required.")]
    Stopped,
    /// A number is beyond what the robot allows.
    #[error("{what}: {value} is out of range, expected {min} to {max} {unit}")]
    OutOfRange {
        /// The name of the number, such as `right_arm elbow`.
        what: String,
        /// What was asked.
        value: f64,
        /// The smallest that is allowed.
        min: f64,
        /// The largest that is allowed.
        max: f64,
        /// The unit of the three numbers.
        unit: &'static str,
    },
    /// The machine refused the action or failed during it.
    #[error("{robot}: {what}")]
    Hardware {
        /// The robot's name.
        robot: String,
        /// What happened, with the motor or the channel.
        what: String,
    },
    /// The machine did not answer or did not arrive.
    #[error("{robot}: {what} within {limit:?}")]
    Timeout {
        /// The robot's name.
        robot: String,
        /// What did not happen: "no answer from motor 5 on /dev/ttyACM0".
        what: String,
        /// The time it had.
        limit: Duration,
    },
    /// The action is impossible now: the id is taken, the hitch holds nothing.
    #[error("{0}")]
    Refused(String),
}

/// Every error of an adapter, as callers see it.
#[must_use]
pub fn tool_error(error: ActionError) -> ToolError {
    let kind = match &error {
        ActionError::NotSupported { .. } => "NotSupported",
        ActionError::NotConnected { .. } => "NotConnected",
        ActionError::Cancelled => return ToolError::cancelled(),
        ActionError::Stopped => "EmergencyStop",
        ActionError::OutOfRange { .. } => "ValueError",
        ActionError::Timeout { .. } => "TimeoutError",
        ActionError::Hardware { .. } => "HardwareError",
        _ => "RobotError",
    };
    ToolError::new(kind, error)
}
