//! Summaries of lists. Sums are exact: every float is an integer times 2^-1074, and integers do not round.

use num_bigint::BigInt;
use num_traits::{ToPrimitive as _, Zero as _};
use ovos_toolbox_sdk::prelude::*;

use crate::error::{MathError, finite};

// A doc comment would become a part of the published schema.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StatisticsSummaryOutput {
    /// How many numbers there are.
    pub(crate) count: usize,
    /// Arithmetic mean.
    pub(crate) mean: f64,
    /// Median.
    pub(crate) median: f64,
    /// Sample standard deviation; null for fewer than two numbers.
    pub(crate) stdev: Option<f64>,
    /// The smallest number.
    pub(crate) minimum: f64,
    /// The largest number.
    pub(crate) maximum: f64,
    /// The sum.
    pub(crate) total: f64,
    /// Why there is nothing to summarise; all values are 0 then.
    pub(crate) error: Option<String>,
}

const MAX_NUMBERS: usize = 10_000;

/// Summarises a list. For an empty list the answer says that it is empty.
pub(crate) fn summarise(numbers: &[f64]) -> Result<StatisticsSummaryOutput, MathError> {
    if numbers.len() > MAX_NUMBERS {
        return Err(MathError::TooLarge {
            what: "numbers in a list",
            limit: MAX_NUMBERS,
            found: numbers.len(),
        });
    }
    let mut sorted = numbers
        .iter()
        .map(|number| finite(*number))
        .collect::<Result<Vec<f64>, _>>()?;
    sorted.sort_by(f64::total_cmp);
    let (Some(&minimum), Some(&maximum)) = (sorted.first(), sorted.last()) else {
        return Ok(StatisticsSummaryOutput {
            count: 0,
            mean: 0.0,
            median: 0.0,
            stdev: None,
            minimum: 0.0,
            maximum: 0.0,
            total: 0.0,
            error: Some("Empty list provided.".to_string()),
        });
    };
    let units: Vec<BigInt> = sorted.iter().map(|number| to_units(*number)).collect();
    let count = BigInt::from(units.len());
    let total: BigInt = units.iter().sum();
    let middle = units.len() / 2;
    let median = if units.len() % 2 == 1 {
        sorted[middle]
    } else {
        from_units(&units[middle - 1] + &units[middle], BigInt::from(2))?
    };
    let stdev = if units.len() < 2 {
        None
    } else {
        // sum((n x - total)^2) / (n^2 (n - 1)), in units squared.
        let squares: BigInt = units.iter().map(|unit| (unit * &count - &total).pow(2_u32)).sum();
        Some(root(&squares, &(&count * &count * (&count - 1)))?)
    };
    Ok(StatisticsSummaryOutput {
        count: units.len(),
        mean: from_units(total.clone(), count)?,
        median,
        stdev,
        minimum,
        maximum,
        total: from_units(total, BigInt::from(1))?,
        error: None,
    })
}

/// The smallest positive float is 2^-1074.
const SCALE: i64 = 1074;

fn to_units(value: f64) -> BigInt {
    let bits = value.to_bits();
    let exponent = (bits >> 52) & 0x7ff;
    let fraction = bits & ((1 << 52) - 1);
    // Subnormal numbers have no hidden bit and the exponent of the smallest normal one.
    let magnitude = if exponent == 0 {
        BigInt::from(fraction)
    } else {
        BigInt::from(fraction | (1 << 52)) << (exponent - 1)
    };
    if value < 0.0 { -magnitude } else { magnitude }
}

fn from_units(units: BigInt, divisor: BigInt) -> Result<f64, MathError> {
    let (quotient, shift) = divided(&units, &divisor);
    scaled(&quotient, -shift - SCALE)
}

/// The square root, in units of 1, of a variance that is given in squared units of 2^-1074.
fn root(squares: &BigInt, divisor: &BigInt) -> Result<f64, MathError> {
    if squares.is_zero() {
        return Ok(0.0);
    }
    let (quotient, shift) = divided(squares, divisor);
    scaled(&quotient.sqrt(), -shift / 2 - SCALE)
}

/// The quotient times 2^shift, and the shift, which is even. With 160 bits, the quotient's root still has more bits
/// than a float keeps.
fn divided(numerator: &BigInt, denominator: &BigInt) -> (BigInt, i64) {
    let bits = |of: &BigInt| i64::try_from(of.bits()).unwrap_or(i64::MAX / 4);
    let shift = (160 - bits(numerator) + bits(denominator)) & !1;
    let quotient = if shift >= 0 {
        (numerator << shift) / denominator
    } else {
        numerator / (denominator << -shift)
    };
    (quotient, shift)
}

/// `mantissa` times 2^exponent.
fn scaled(mantissa: &BigInt, exponent: i64) -> Result<f64, MathError> {
    let mut value = mantissa.to_f64().ok_or(MathError::NotANumber)?;
    let mut left = exponent;
    // In steps, because 2^-1100 alone is zero.
    while left != 0 {
        let step = left.clamp(-500, 500);
        value *= 2.0_f64.powi(i32::try_from(step).unwrap_or(0));
        left -= step;
    }
    finite(value)
}
