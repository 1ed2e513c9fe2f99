//! Words and ranges that several tools take.
//!
//! Owns enums with the exact words of the catalogue and the checks of numbers. The service has checked arguments
//! against the schema already; what is checked here once more also holds for a program that drives the toolbox directly.

use ovos_toolbox_sdk::ToolError;

use crate::subsystem::Subsystem;

/// An enum of words with a default: `words!(Arm, Right: Left "left", Right "right")`.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $default:ident: $($variant:ident $word:literal),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[schemars(inline)]
        pub(crate) enum $name {
            $(#[serde(rename = $word)] $variant),+
        }

        impl Default for $name {
            fn default() -> Self {
                Self::$default
            }
        }

        #[allow(dead_code, reason = "not every enum's words are passed on")]
        impl $name {
            /// The word itself.
            #[must_use]
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
        }
    };
}
pub(crate) use words;

words!(
    /// One arm or both.
    Arms, Right: Left "left", Right "right", Both "both"
);
words!(
    /// One arm.
    Arm, Right: Left "left", Right "right"
);
words!(
    /// A way to go.
    Direction, Forward: Forward "forward", Backward "backward", Left "left", Right "right",
    RotateLeft "rotate_left", RotateRight "rotate_right"
);

impl Arms {
    pub(super) fn each(self) -> Vec<Subsystem> {
        match self {
            Self::Left => vec![Subsystem::LeftArm],
            Self::Right => vec![Subsystem::RightArm],
            Self::Both => vec![Subsystem::LeftArm, Subsystem::RightArm],
        }
    }
}

impl Arm {
    pub(super) fn subsystem(self) -> Subsystem {
        match self {
            Self::Left => Subsystem::LeftArm,
            Self::Right => Subsystem::RightArm,
        }
    }
}

/// A direction, a name, or degrees: a model that means degrees writes a number.
#[derive(Clone, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
#[schemars(inline, extend("type" = ["string", "number"]), transform = one_type)]
pub(super) enum Target {
    Degrees(f64),
    Word(String),
}

/// The two types stand beside each other: models and strict modes read that better than a choice of two schemas.
fn one_type(schema: &mut schemars::Schema) {
    schema.remove("anyOf");
}

impl Target {
    /// The word, or the degrees as text.
    pub(super) fn word(&self, name: &str) -> Result<String, ToolError> {
        match self {
            Self::Degrees(degrees) => Ok(degrees.to_string()),
            Self::Word(text) => word(name, text),
        }
    }
}

/// Checks that a number is in its range.
pub(super) fn range(name: &str, value: f64, min: f64, max: f64) -> Result<f64, ToolError> {
    if value >= min && value <= max {
        return Ok(value);
    }
    Err(ToolError::bad_args(format!(
        "{name}: expected {min} to {max}, got {value}"
    )))
}

/// Where a hand goes: all three numbers or none.
#[derive(Clone, Copy, serde::Deserialize, schemars::JsonSchema)]
pub(super) struct Point {
    /// Metres ahead of the arm's base, where the hand goes. With y and z.
    #[serde(default)]
    #[schemars(range(min = -3.0, max = 3.0))]
    x: Option<f64>,
    /// Metres to the left of the arm's base.
    #[serde(default)]
    #[schemars(range(min = -3.0, max = 3.0))]
    y: Option<f64>,
    /// Metres above the arm's base.
    #[serde(default)]
    #[schemars(range(min = -3.0, max = 3.0))]
    z: Option<f64>,
}

impl Point {
    /// The point, where there is one.
    pub(super) fn point(self) -> Result<Option<[f64; 3]>, ToolError> {
        match (self.x, self.y, self.z) {
            (None, None, None) => Ok(None),
            (Some(x), Some(y), Some(z)) => {
                let axis = |name: &str, metres| range(name, metres, -FARTHEST, FARTHEST);
                Ok(Some([axis("x", x)?, axis("y", y)?, axis("z", z)?]))
            }
            _ => Err(ToolError::bad_args(
                "x, y, z: give all three: metres ahead of the arm's base, to its left and upwards",
            )),
        }
    }
}

/// The farthest point from an arm's base that can be named, in metres.
pub(super) const FARTHEST: f64 = 3.0;

/// Leaves x, y and z out of a tool's arguments.
pub(super) fn without_point(mut arguments: serde_json::Value) -> serde_json::Value {
    if let Some(properties) = arguments["properties"].as_object_mut() {
        for axis in ["x", "y", "z"] {
            properties.shift_remove(axis);
        }
    }
    arguments
}

/// Checks that a number, if it is given, is in its range.
pub(super) fn range_of(name: &str, value: Option<f64>, min: f64, max: f64) -> Result<Option<f64>, ToolError> {
    value.map(|value| range(name, value, min, max)).transpose()
}

/// Checks a name of something: not empty, and short enough to be one.
pub(super) fn word(name: &str, value: &str) -> Result<String, ToolError> {
    let value = value.trim();
    if value.is_empty() || value.chars().count() > 200 || value.chars().any(char::is_control) {
        return Err(ToolError::bad_args(format!(
            "{name}: expected 1 to 200 characters on one line"
        )));
    }
    Ok(value.to_string())
}

/// Checks a name that becomes the name of a file.
pub(super) fn file_word(name: &str, value: &str) -> Result<String, ToolError> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if value.is_empty() || value.len() > 64 || !value.bytes().all(legal) {
        return Err(ToolError::bad_args(format!(
            "{name}: expected 1 to 64 letters, digits, _ and -, got {value:?}"
        )));
    }
    Ok(value.to_string())
}

pub(super) fn yes() -> bool {
    true
}

pub(super) fn half() -> f64 {
    0.5
}
