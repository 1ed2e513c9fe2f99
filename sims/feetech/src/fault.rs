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

impl Fault {
    /// What arrives of an answer, whatever its protocol; nothing if it is lost.
    pub(crate) fn distort(self, mut answer: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Mute | Self::Absent => return Vec::new(),
            Self::BadChecksum => {
                if let Some(checksum) = answer.last_mut() {
                    *checksum ^= 0x55;
                }
            }
            Self::Noise => drop(answer.splice(0..0, [0x13, 0x37])),
            Self::None | Self::Error(_) => {}
        }
        answer
    }
}
