//! PX4's flight modes and their numbers in MAVLink.
//!
//! The commander decides when a mode may be entered. Start with [`Mode`].

/// A PX4 flight mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Sticks control the motors directly.
    Manual,
    /// Sticks with altitude hold.
    Altctl,
    /// Sticks with position hold; without input it stands still.
    Posctl,
    /// Sticks control the turn rates.
    Acro,
    /// Setpoints from a companion computer.
    Offboard,
    /// Sticks control the attitude.
    Stabilized,
    /// Ready to fly.
    Ready,
    /// Climb to `MIS_TAKEOFF_ALT`.
    Takeoff,
    /// Hold the position (PX4's loiter).
    Hold,
    /// Fly the uploaded mission.
    Mission,
    /// Return to launch.
    Return,
    /// Land at the present position.
    Land,
    /// Follow a target.
    Follow,
}

/// Mode, main mode, sub mode.
const NUMBERS: &[(Mode, u8, u8)] = &[
    (Mode::Manual, 1, 0),
    (Mode::Altctl, 2, 0),
    (Mode::Posctl, 3, 0),
    (Mode::Ready, 4, 1),
    (Mode::Takeoff, 4, 2),
    (Mode::Hold, 4, 3),
    (Mode::Mission, 4, 4),
    (Mode::Return, 4, 5),
    (Mode::Land, 4, 6),
    (Mode::Follow, 4, 8),
    (Mode::Acro, 5, 0),
    (Mode::Offboard, 6, 0),
    (Mode::Stabilized, 7, 0),
];

impl Mode {
    /// The mode with these numbers in PX4's `custom_mode`, if there is one.
    #[must_use]
    pub fn from_numbers(main: u8, sub: u8) -> Option<Self> {
        let automatic = 4;
        NUMBERS
            .iter()
            .find(|(_, m, s)| *m == main && (*s == sub || main != automatic))
            .map(|(mode, ..)| *mode)
    }

    /// The value in a heartbeat: the main mode in bits 16 to 23, the sub mode above them.
    #[must_use]
    pub fn custom_mode(self) -> u32 {
        NUMBERS
            .iter()
            .find(|(mode, ..)| *mode == self)
            .map_or(0, |(_, main, sub)| u32::from(*main) << 16 | u32::from(*sub) << 24)
    }

    /// Whether PX4 refuses to arm in this mode, because it ends on the ground.
    #[must_use]
    pub fn prevents_arming(self) -> bool {
        matches!(self, Self::Return | Self::Land)
    }

    /// Whether a pilot flies with sticks in this mode.
    #[must_use]
    pub fn is_manual(self) -> bool {
        matches!(
            self,
            Self::Manual | Self::Altctl | Self::Posctl | Self::Acro | Self::Stabilized
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_found_by_its_numbers() {
        for (mode, main, sub) in NUMBERS {
            assert_eq!(Mode::from_numbers(*main, *sub), Some(*mode));
            assert_eq!(mode.custom_mode() >> 16 & 0xff, u32::from(*main));
        }
        assert_eq!(Mode::from_numbers(4, 99), None);
        assert_eq!(Mode::from_numbers(9, 0), None);
    }
}
