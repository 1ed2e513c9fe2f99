//! Ranges of arguments: which values are clamped and which are refused.

use ovos_toolbox_sdk::prelude::*;

use super::refusal::{Refusal, refuse};

/// Treatment of a number outside its range. NaN and infinity are always refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Treatment {
    /// Uses the nearest bound and says so in the answer.
    Clamp,
    /// Refuses the call.
    Reject,
}

/// The range of one argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) arg: &'static str,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) treatment: Treatment,
    /// Advice in the refusal of a negative number. It is set where a negative number makes no sense and clamping it
    /// would move the vehicle the opposite way. `None`: a negative number is clamped like any other.
    pub(crate) negative: Option<&'static str>,
}

/// The advice for heights: they are positive above home, where the values of a down axis are negative.
pub(crate) const HEIGHT: &str = "heights are positive above home: send 5 for 5 m up";

impl Range {
    /// A clamping range of heights.
    pub(crate) fn height(arg: &'static str, min: f64, max: f64) -> Self {
        Self {
            negative: Some(HEIGHT),
            ..Self::clamping(arg, min, max)
        }
    }

    /// A clamping range.
    pub(crate) fn clamping(arg: &'static str, min: f64, max: f64) -> Self {
        Self {
            arg,
            min,
            max,
            treatment: Treatment::Clamp,
            negative: None,
        }
    }
}

/// Formats a number for a message; shortens very large ones.
pub(crate) fn shown(value: f64) -> String {
    if value.abs() < 1e9 {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// A bound with two digits behind the point, rounded to the side on which it still holds.
fn inner(bound: f64, round: fn(f64) -> f64) -> f64 {
    round((bound * 100.0 * 1e6).round() / 1e6) / 100.0
}

/// A number that was clamped.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Adjustment {
    arg: String,
    /// What was asked for.
    asked: f64,
    /// What was done.
    used: f64,
}

impl Adjustment {
    pub(crate) fn arg(&self) -> &str {
        &self.arg
    }

    /// `{"asked", "used"}`.
    pub(crate) fn numbers(&self) -> Value {
        json!({"asked": self.asked, "used": self.used})
    }
}

impl Range {
    /// The value to use.
    ///
    /// # Errors
    /// It is not finite, or outside a range that rejects.
    pub(crate) fn apply(&self, value: f64, adjusted: &mut Vec<Adjustment>) -> Result<f64, Refusal> {
        if !value.is_finite() {
            return refuse("not_finite", format!("{}: expected a finite number", self.arg));
        }
        if (self.min..=self.max).contains(&value) {
            return Ok(value);
        }
        let expected = || {
            format!(
                "{} {}: expected {} to {}",
                self.arg,
                shown(value),
                inner(self.min, f64::ceil),
                inner(self.max, f64::floor)
            )
        };
        if let Some(instead) = self.negative.filter(|_| value < 0.0) {
            return refuse("out_of_range", format!("{}; {instead}", expected()));
        }
        if self.treatment == Treatment::Reject {
            return refuse("out_of_range", expected());
        }
        let used = value.clamp(self.min, self.max);
        adjusted.push(Adjustment {
            arg: self.arg.to_string(),
            asked: value,
            used,
        });
        Ok(used)
    }
}

/// Reads a whole number that may be written as 50.0.
///
/// # Errors
/// It has a fraction, or is no number.
pub(crate) fn whole<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(from)?;
    if value.is_finite() && value.fract() != 0.0 {
        return Err(serde::de::Error::custom(format!(
            "{value}: expected a whole number"
        )));
    }
    Ok(value)
}
