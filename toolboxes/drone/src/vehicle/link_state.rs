//! The state of the connection to a vehicle.

/// State of the connection to a vehicle.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Link {
    /// Connecting, or why that has not succeeded yet.
    Connecting(String),
    /// No vehicle has answered so far; says what to do.
    Absent(String),
    /// Recognised, and telemetry arrives.
    Up,
    /// Telemetry arrives, but the vehicle is not what the configuration says and must not be commanded.
    Untrusted(String),
    /// A simulator that no call has asked for; the next call connects it.
    Asleep,
    /// It was connected and is lost.
    Lost(String),
    /// It cannot connect: a program is missing.
    Missing(String),
}

/// The text about a link that is [`Link::Asleep`].
pub(super) const ASLEEP: &str =
    "the simulator is idle, because no call has needed it for some seconds; the next call connects it";
