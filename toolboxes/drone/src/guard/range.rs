//! Ranges of arguments: what is clamped, what is refused.

use ovos_toolbox_sdk::prelude::*;

use super::{Refusal, refuse};

/// What happens to a number outside its range. NaN and infinity are refused either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// It becomes the nearest bound, and the answer says so.
    Clamp,
    /// The call is refused.
    Reject,
}

/// The range of one argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) arg: &'static str,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) treatment: Treatment,
    /// What to send instead of a negative number, which is refused where no number below zero makes sense: clamped it would
    /// lead the opposite way. `None`: it is clamped like any other.
    pub(crate) negative: Option<&'static str>,
}

/// Heights are above home, whatever a frame that counts downwards says.
pub(crate) const HEIGHT: &str = "heights are positive above home: send 5 for 5 m up";

impl Range {
    /// A range of heights that clamps.
    pub(crate) fn height(arg: &'static str, min: f64, max: f64) -> Self {
        Self {
            negative: Some(HEIGHT),
            ..Self::clamping(arg, min, max)
        }
    }

    /// A range that clamps.
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

/// A number in a sentence; not the 300 digits of a very large one.
pub(crate) fn shown(value: f64) -> String {
    if value.abs() < 1e9 {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// A number that was clamped.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Adjusted {
    /// The argument.
    arg: String,
    /// What was asked for.
    requested: f64,
    /// What was done.
    applied: f64,
}

impl Adjusted {
    pub(crate) fn arg(&self) -> &str {
        &self.arg
    }

    /// `{"requested", "applied"}`.
    pub(crate) fn numbers(&self) -> Value {
        json!({"requested": self.requested, "applied": self.applied})
    }
}

impl Range {
    /// The value to use.
    ///
    /// # Errors
    /// It is not finite, or outside a range that rejects.
    pub(crate) fn apply(&self, value: f64, adjusted: &mut Vec<Adjusted>) -> Result<f64, Refusal> {
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
                self.min,
                self.max
            )
        };
        if let Some(instead) = self.negative.filter(|_| value < 0.0) {
            return refuse("out_of_range", format!("{}; {instead}", expected()));
        }
        if self.treatment == Treatment::Reject {
            return refuse("out_of_range", expected());
        }
        let applied = value.clamp(self.min, self.max);
        adjusted.push(Adjusted {
            arg: self.arg.to_string(),
            requested: value,
            applied,
        });
        Ok(applied)
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
