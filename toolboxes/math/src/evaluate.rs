//! Evaluation of expressions by Python's rules for floats.
//!
//! Owns the functions and constants. Every value is an `f64`, so that none can grow; integers appear only inside `gcd`,
//! `lcm` and `factorial`, where the largest float bounds their size.

use num_bigint::BigInt;
use num_integer::Integer as _;
use num_traits::{FromPrimitive as _, One as _, Signed as _, ToPrimitive as _, Zero as _};

use crate::error::MathError;
use crate::expression::{Expression, Operator};

const CONSTANTS: &str = "pi, e, tau and inf";
const FUNCTIONS: &str = "abs, round, sqrt, ceil, floor, log, log10, log2, exp, sin, cos, tan, asin, acos, atan, atan2, \
                         degrees, radians, factorial, gcd and lcm";

/// The value of an expression; `x` is the unknown of an equation.
pub(crate) fn evaluate(expression: &Expression, x: Option<f64>) -> Result<f64, MathError> {
    match expression {
        Expression::Number(value) if value.is_infinite() => Err(MathError::Overflow),
        Expression::Number(value) => Ok(*value),
        Expression::Name(name) => constant(name, x),
        Expression::Negative(inner) => Ok(-evaluate(inner, x)?),
        Expression::Binary(operator, left, right) => {
            apply(*operator, evaluate(left, x)?, evaluate(right, x)?)
        }
        Expression::Call(name, arguments) => {
            let values = arguments
                .iter()
                .map(|argument| evaluate(argument, x))
                .collect::<Result<Vec<_>, _>>()?;
            call(name, &values)
        }
    }
}

fn constant(name: &str, x: Option<f64>) -> Result<f64, MathError> {
    match (name, x) {
        ("x", Some(x)) => Ok(x),
        ("pi", _) => Ok(std::f64::consts::PI),
        ("e", _) => Ok(std::f64::consts::E),
        ("tau", _) => Ok(std::f64::consts::TAU),
        ("inf", _) => Ok(f64::INFINITY),
        ("True", _) => Ok(1.0),
        ("False", _) => Ok(0.0),
        _ => Err(MathError::UnknownName {
            name: name.to_string(),
            known: CONSTANTS,
        }),
    }
}

fn apply(operator: Operator, a: f64, b: f64) -> Result<f64, MathError> {
    match operator {
        Operator::Add => Ok(a + b),
        Operator::Subtract => Ok(a - b),
        Operator::Multiply => Ok(a * b),
        Operator::Divide | Operator::FloorDivide | Operator::Modulo if b == 0.0 => {
            Err(MathError::DivisionByZero)
        }
        Operator::Divide => Ok(a / b),
        Operator::FloorDivide => Ok(floor_divide(a, b)),
        Operator::Modulo => Ok(modulo(a, b)),
        Operator::Power => power(a, b),
    }
}

/// The remainder with the sign of the divisor.
fn modulo(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest == 0.0 {
        return 0.0_f64.copysign(b);
    }
    if (rest < 0.0) == (b < 0.0) { rest } else { rest + b }
}

/// The quotient rounded towards minus infinity. It is consistent with [`modulo`] also where `a / b` itself would be
/// rounded up to the next integer.
fn floor_divide(a: f64, b: f64) -> f64 {
    let quotient = (a - modulo(a, b)) / b;
    if quotient == 0.0 {
        0.0_f64.copysign(a / b)
    } else {
        quotient.round()
    }
}

fn power(a: f64, b: f64) -> Result<f64, MathError> {
    if a == 0.0 && b < 0.0 {
        return Err(MathError::DivisionByZero);
    }
    if a < 0.0 && a.is_finite() && b.is_finite() && b.fract() != 0.0 {
        // Python returns a complex number here.
        return Err(MathError::Domain {
            function: "a fractional power",
            value: a,
        });
    }
    let value = a.powf(b);
    if value.is_infinite() && a.is_finite() && b.is_finite() {
        Err(MathError::Overflow)
    } else {
        Ok(value)
    }
}

fn call(name: &str, values: &[f64]) -> Result<f64, MathError> {
    match (name, values) {
        ("gcd", _) => integers(values)?
            .iter()
            .fold(BigInt::zero(), |a, b| a.gcd(b))
            .to_f64()
            .ok_or(MathError::Overflow),
        ("lcm", _) => lcm(&integers(values)?),
        ("round", [a]) => Ok(a.round_ties_even()),
        ("round", [a, digits]) => round_to(*a, *digits),
        ("log", [a]) => Ok(positive("log", *a)?.ln()),
        ("log", [a, base]) => {
            let divisor = positive("log", *base)?.ln();
            if divisor == 0.0 {
                Err(MathError::DivisionByZero)
            } else {
                Ok(positive("log", *a)?.ln() / divisor)
            }
        }
        ("atan2", [a, b]) => Ok(a.atan2(*b)),
        (_, [a]) if is_unary(name) => unary(name, *a),
        ("round" | "log", _) => Err(count(name, "1 or 2 values", values)),
        ("atan2", _) => Err(count(name, "2 values", values)),
        _ if is_unary(name) => Err(count(name, "1 value", values)),
        _ => Err(MathError::UnknownName {
            name: name.to_string(),
            known: FUNCTIONS,
        }),
    }
}

fn is_unary(name: &str) -> bool {
    matches!(
        name,
        "abs"
            | "sqrt"
            | "ceil"
            | "floor"
            | "log10"
            | "log2"
            | "exp"
            | "sin"
            | "cos"
            | "tan"
            | "asin"
            | "acos"
            | "atan"
            | "degrees"
            | "radians"
            | "factorial"
    )
}

fn unary(name: &str, a: f64) -> Result<f64, MathError> {
    match name {
        "abs" => Ok(a.abs()),
        "sqrt" if a < 0.0 => Err(MathError::Domain {
            function: "sqrt",
            value: a,
        }),
        "sqrt" => Ok(a.sqrt()),
        "ceil" => Ok(a.ceil()),
        "floor" => Ok(a.floor()),
        "log10" => Ok(positive("log10", a)?.log10()),
        "log2" => Ok(positive("log2", a)?.log2()),
        "exp" => {
            let value = a.exp();
            if value.is_infinite() && a.is_finite() {
                Err(MathError::Overflow)
            } else {
                Ok(value)
            }
        }
        "sin" | "cos" | "tan" if a.is_infinite() => Err(MathError::Domain {
            function: "an angle",
            value: a,
        }),
        "sin" => Ok(a.sin()),
        "cos" => Ok(a.cos()),
        "tan" => Ok(a.tan()),
        "asin" if a.abs() > 1.0 => Err(MathError::Domain {
            function: "asin",
            value: a,
        }),
        "asin" => Ok(a.asin()),
        "acos" if a.abs() > 1.0 => Err(MathError::Domain {
            function: "acos",
            value: a,
        }),
        "acos" => Ok(a.acos()),
        "atan" => Ok(a.atan()),
        "degrees" => Ok(a.to_degrees()),
        "radians" => Ok(a.to_radians()),
        _ => factorial(a),
    }
}

fn positive(function: &'static str, value: f64) -> Result<f64, MathError> {
    if value > 0.0 {
        Ok(value)
    } else {
        Err(MathError::Domain { function, value })
    }
}

fn count(function: &str, expected: &'static str, values: &[f64]) -> MathError {
    MathError::ArgumentCount {
        function: function.to_string(),
        expected,
        found: values.len(),
    }
}

/// Rounds through the decimal text, as Python does: exact halves go to even.
fn round_to(value: f64, digits: f64) -> Result<f64, MathError> {
    if !(0.0..=17.0).contains(&digits) || digits.fract() != 0.0 {
        return Err(MathError::Domain {
            function: "the number of digits",
            value: digits,
        });
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be 0 to 17"
    )]
    let digits = digits as usize;
    format!("{value:.digits$}")
        .parse()
        .map_err(|_| MathError::NotANumber)
}

fn integers(values: &[f64]) -> Result<Vec<BigInt>, MathError> {
    values
        .iter()
        .map(|value| BigInt::from_f64(value.trunc()).ok_or(MathError::NotANumber))
        .collect()
}

fn lcm(values: &[BigInt]) -> Result<f64, MathError> {
    let mut multiple = BigInt::one();
    for value in values {
        multiple = multiple.lcm(value).abs();
        // Beyond the largest float the result is an overflow, and further factors would only cost time.
        if multiple.bits() > 1024 {
            return Err(MathError::Overflow);
        }
    }
    multiple
        .to_f64()
        .filter(|value| value.is_finite())
        .ok_or(MathError::Overflow)
}

fn factorial(value: f64) -> Result<f64, MathError> {
    let value = value.trunc();
    if value.is_nan() || value < 0.0 {
        return Err(MathError::Domain {
            function: "factorial",
            value,
        });
    }
    // 171! is beyond the largest float.
    if value > 170.0 {
        return Err(MathError::Overflow);
    }
    let mut product = BigInt::one();
    let mut factor = 1.0;
    while factor < value {
        factor += 1.0;
        product *= BigInt::from_f64(factor).unwrap_or_default();
    }
    product.to_f64().ok_or(MathError::Overflow)
}
