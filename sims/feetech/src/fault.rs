//! Faults of a servo.

/// A fault of one servo, from the moment it is set until it is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// No fault.
    #[default]
    None,
    /// Its cable is loose: it neither receives nor answers.
    Absent,
    /// It receives and executes instructions, but its answers are lost.
    Mute,
    /// Its answers carry a wrong checksum.
    BadChecksum,
    /// Its answers begin with two bytes of noise.
    Noise,
    /// Its answers have these bits in the error field: 1 voltage, 2 angle, 4 overheat, 8 current, 32 overload.
    Error(u8),
}
