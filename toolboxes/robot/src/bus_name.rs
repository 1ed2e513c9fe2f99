//! The names of the buses of servos.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A serial bus with servos.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum BusName {
    /// The one of the left arm.
    Left,
    /// The one of the right arm.
    Right,
}

impl BusName {
    /// The name in arguments and results.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
        }
    }
}
