//! A number of a message.

use serde::{Deserialize, Deserializer};

/// Reads a number. JSON has none that is not a number, and a robot may say such a one of a motor that is away.
pub(super) fn float<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum NumberOrText {
        Number(f32),
        Text(String),
    }
    Ok(match NumberOrText::deserialize(deserializer)? {
        NumberOrText::Number(number) => number,
        NumberOrText::Text(text) => text.parse().unwrap_or(f32::NAN),
    })
}

/// Degrees as the radians of the robots' messages.
#[allow(
    clippy::cast_possible_truncation,
    reason = "an angle has no more digits than a float"
)]
pub(crate) fn radians(degrees: f64) -> f32 {
    degrees.to_radians() as f32
}
