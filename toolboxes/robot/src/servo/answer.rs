//! What a servo says, whatever its wire format.

/// A servo's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) id: u8,
    /// The alarms of the servo.
    pub(super) error: u8,
    pub(super) parameters: Vec<u8>,
}
