//! What can go wrong with one servo.

/// A fault of one servo, from the moment it is set until it is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It works.
    #[default]
    None,
    /// Its cable is loose: it neither hears nor answers.
    Absent,
    /// It hears and obeys, its answers are lost.
    Mute,
    /// Its answers carry a wrong checksum.
    BadChecksum,
    /// Its answers begin with two bytes of noise.
    Noise,
    /// These bits stand in the error field of its answers: 1 voltage, 2 angle, 4 overheat, 8 current, 32 overload.
    Error(u8),
}
