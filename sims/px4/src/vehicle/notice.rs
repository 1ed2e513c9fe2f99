//! What the autopilot reports of its own.

use super::payload::Photo;

/// A report that the autopilot makes without a request; the link sends it.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// MAVLink's severity, 0 to 7, and the text.
    Text(u8, String),
    /// The mission item with this number was reached.
    Reached(u16),
    /// A photo was taken.
    Photo(Photo),
}

/// The severities of MAVLink that the vehicle uses.
pub mod severity {
    /// Critical.
    pub const CRITICAL: u8 = 2;
    /// Error.
    pub const ERROR: u8 = 3;
    /// Warning.
    pub const WARNING: u8 = 4;
    /// For information.
    pub const INFO: u8 = 6;
}
