//! Who sends a message, and who gets it.

use mavlink::dialects::common::MavMessage;

/// MAVLink system id of the vehicle.
pub const SYSTEM: u8 = 1;

/// MAVLink component id of the autopilot.
pub const AUTOPILOT: u8 = 1;

/// MAVLink component id of the camera.
pub const CAMERA: u8 = 100;

/// A message to send and its component.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// [`AUTOPILOT`] or [`CAMERA`].
    pub component: u8,
    /// The message.
    pub message: MavMessage,
}

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    pub(super) system: u8,
    pub(super) component: u8,
}
