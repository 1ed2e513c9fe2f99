//! The parts of a robot that are reserved, moved and halted.
//!
//! Owns their names. A gripper belongs to its arm, because moving the arm also moves what the gripper holds.
//! Read [`Subsystem`].

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of a robot. In plans, with several robots, its name is `<robot>/<subsystem>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Subsystem {
    /// The left arm with its gripper.
    LeftArm,
    /// The right arm with its gripper.
    RightArm,
    /// Wheels or legs.
    Base,
    /// The vertical lift.
    Lift,
    /// The head: pan and tilt.
    Gantry,
    /// The clamp at the back that holds carts and the charger.
    Hitch,
    /// Everything; conflicts with every one.
    All,
}

impl Subsystem {
    /// Every subsystem but [`Subsystem::All`], in the order in which results name them.
    pub const EACH: [Self; 6] = [
        Self::LeftArm,
        Self::RightArm,
        Self::Base,
        Self::Lift,
        Self::Gantry,
        Self::Hitch,
    ];

    /// The name in plans, configuration and results.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LeftArm => "left_arm",
            Self::RightArm => "right_arm",
            Self::Base => "base",
            Self::Lift => "lift",
            Self::Gantry => "gantry",
            Self::Hitch => "hitch",
            Self::All => "all",
        }
    }

    /// Whether it is an arm.
    #[must_use]
    pub fn is_arm(self) -> bool {
        matches!(self, Self::LeftArm | Self::RightArm)
    }

    /// The subsystem itself, or every subsystem for [`Subsystem::All`].
    #[must_use]
    pub fn each(self) -> Vec<Self> {
        match self {
            Self::All => Self::EACH.to_vec(),
            one => vec![one],
        }
    }
}

impl fmt::Display for Subsystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// No subsystem has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no subsystem {0}: known are left_arm, right_arm, base, lift, gantry, hitch and all")]
pub struct UnknownSubsystem(pub String);

impl FromStr for Subsystem {
    type Err = UnknownSubsystem;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::EACH
            .into_iter()
            .chain([Self::All])
            .find(|subsystem| subsystem.as_str() == name)
            .ok_or_else(|| UnknownSubsystem(name.to_string()))
    }
}
