//! Equations in one unknown: all real roots of polynomials, sign changes of everything else.
//!
//! A polynomial's roots lie between those of its derivative, so they are found from the lowest degree up, each in an
//! interval with exactly one root. All other equations are scanned between -1000 and 1000, as OVOS's own toolbox does.

use roots::{Convergency, find_root_brent};

use crate::error::{MathError, finite};
use crate::evaluate::evaluate;
use crate::expression::{Expression, Operator, parse};

const MAX_DEGREE: usize = 64;

/// The real solutions in ascending order, and the method that found them.
pub(crate) fn solve(text: &str) -> Result<(Vec<f64>, &'static str), MathError> {
    let expression = match text.split_once('=') {
        Some((left, right)) => Expression::Binary(
            Operator::Subtract,
            Box::new(parse(left)?),
            Box::new(parse(right)?),
        ),
        None => parse(text)?,
    };
    let polynomial = coefficients(&expression).filter(|list| list.iter().all(|value| value.is_finite()));
    let (mut solutions, method) = match polynomial {
        Some(polynomial) => (real_roots(&polynomial), "symbolic"),
        None => (scan(&expression)?, "numeric"),
    };
    solutions.retain(|root| root.is_finite());
    // Removes negative zero, which reads as a different answer.
    solutions.iter_mut().for_each(|root| *root += 0.0);
    solutions.sort_by(f64::total_cmp);
    solutions.dedup_by(|a, b| (*a - *b).abs() <= 1e-9 * b.abs().max(1.0));
    Ok((solutions, method))
}

/// Coefficients by ascending power, if the expression is a polynomial in x.
fn coefficients(expression: &Expression) -> Option<Vec<f64>> {
    match expression {
        Expression::Name(name) if name == "x" => Some(vec![0.0, 1.0]),
        Expression::Negative(inner) => Some(coefficients(inner)?.into_iter().map(|value| -value).collect()),
        Expression::Binary(operator, left, right) => {
            let (left, right) = (coefficients(left)?, coefficients(right)?);
            match operator {
                Operator::Add => Some(sum(&left, &right, 1.0)),
                Operator::Subtract => Some(sum(&left, &right, -1.0)),
                Operator::Multiply => product(&left, &right),
                Operator::Divide if right.len() == 1 && right[0] != 0.0 => {
                    Some(left.into_iter().map(|value| value / right[0]).collect())
                }
                Operator::Power if right.len() == 1 => raise(&left, right[0]),
                _ => constant(expression),
            }
        }
        _ => constant(expression),
    }
}

fn constant(expression: &Expression) -> Option<Vec<f64>> {
    evaluate(expression, None)
        .and_then(finite)
        .ok()
        .map(|value| vec![value])
}

fn sum(left: &[f64], right: &[f64], sign: f64) -> Vec<f64> {
    let at = |list: &[f64], power: usize| list.get(power).copied().unwrap_or(0.0);
    let terms = left.len().max(right.len());
    trimmed(
        (0..terms)
            .map(|power| at(left, power) + sign * at(right, power))
            .collect(),
    )
}

fn product(left: &[f64], right: &[f64]) -> Option<Vec<f64>> {
    if left.len() + right.len() > MAX_DEGREE + 2 {
        return None;
    }
    let mut product = vec![0.0; left.len() + right.len() - 1];
    for (i, a) in left.iter().enumerate() {
        for (j, b) in right.iter().enumerate() {
            product[i + j] += a * b;
        }
    }
    Some(trimmed(product))
}

fn raise(base: &[f64], exponent: f64) -> Option<Vec<f64>> {
    if base.len() == 1 {
        return finite(base[0].powf(exponent)).ok().map(|value| vec![value]);
    }
    if exponent.fract() != 0.0 || !(0.0..=64.0).contains(&exponent) {
        return None;
    }
    let mut power = vec![1.0];
    let mut done = 0.0;
    while done < exponent {
        power = product(&power, base)?;
        done += 1.0;
    }
    Some(power)
}

/// Removes leading zeroes; never empty.
fn trimmed(mut list: Vec<f64>) -> Vec<f64> {
    while list.len() > 1 && list.last() == Some(&0.0) {
        list.pop();
    }
    list
}

fn value(polynomial: &[f64], x: f64) -> f64 {
    polynomial
        .iter()
        .rev()
        .fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// Whether the value is zero within the rounding error of computing it.
fn vanishes(polynomial: &[f64], x: f64) -> bool {
    let magnitude = polynomial
        .iter()
        .rev()
        .fold(0.0, |sum, coefficient| sum * x.abs() + coefficient.abs());
    value(polynomial, x).abs() <= magnitude * f64::EPSILON * 16.0
}

fn real_roots(polynomial: &[f64]) -> Vec<f64> {
    let polynomial = trimmed(polynomial.to_vec());
    match polynomial.as_slice() {
        [_] | [] => Vec::new(),
        [b, a] => vec![-b / a],
        [c, b, a] => quadratic(*a, *b, *c),
        [.., highest] => {
            let derivative: Vec<f64> = (1_u32..)
                .zip(&polynomial[1..])
                .map(|(power, value)| f64::from(power) * value)
                .collect();
            // Cauchy's bound on the roots.
            let bound = 1.0
                + polynomial
                    .iter()
                    .fold(0.0_f64, |most, value| most.max((value / highest).abs()));
            let mut turns = real_roots(&derivative);
            turns.retain(|turn| turn.abs() < bound);
            turns.sort_by(f64::total_cmp);
            // A root that is also a turning point has no sign change.
            let mut roots: Vec<f64> = turns
                .iter()
                .copied()
                .filter(|turn| vanishes(&polynomial, *turn))
                .collect();
            let mut points = vec![-bound];
            points.extend(&turns);
            points.push(bound);
            roots.extend(points.windows(2).filter_map(|pair| {
                let (low, high) = (pair[0], pair[1]);
                let ends = [low, high]
                    .into_iter()
                    .any(|end| turns.contains(&end) && vanishes(&polynomial, end));
                if ends {
                    None
                } else {
                    between(low, high, |x| value(&polynomial, x))
                }
            }));
            roots
                .into_iter()
                .map(|root| whole_if_exact(root, |x| value(&polynomial, x)))
                .collect()
        }
    }
}

/// The real roots of a quadratic polynomial, without the cancellation of the usual formula.
fn quadratic(a: f64, b: f64, c: f64) -> Vec<f64> {
    let discriminant = b.mul_add(b, -4.0 * a * c);
    if discriminant < 0.0 {
        return Vec::new();
    }
    let q = -0.5 * (b + discriminant.sqrt().copysign(b));
    if q == 0.0 { vec![0.0] } else { vec![q / a, c / q] }
}

fn whole_if_exact(root: f64, f: impl Fn(f64) -> f64) -> f64 {
    let whole = root.round();
    if (root - whole).abs() < 1e-6 && f(whole) == 0.0 {
        whole
    } else {
        root
    }
}

/// The root in an interval with a sign change.
fn between(low: f64, high: f64, f: impl Fn(f64) -> f64) -> Option<f64> {
    let (at_low, at_high) = (f(low), f(high));
    if at_low.is_nan()
        || at_high.is_nan()
        || at_low.signum() == at_high.signum()
        || at_low == 0.0
        || at_high == 0.0
    {
        return None;
    }
    find_root_brent(low, high, &f, &mut ToTheLastBit).ok()
}

struct ToTheLastBit;

impl Convergency<f64> for ToTheLastBit {
    fn is_root_found(&mut self, y: f64) -> bool {
        y == 0.0
    }

    fn is_converged(&mut self, x1: f64, x2: f64) -> bool {
        (x1 - x2).abs() <= 2.0 * f64::EPSILON * x1.abs().max(x2.abs())
    }

    fn is_iteration_limit_reached(&mut self, iteration: usize) -> bool {
        iteration >= 500
    }
}

/// Finds sign changes, and zeroes at whole numbers.
fn scan(expression: &Expression) -> Result<Vec<f64>, MathError> {
    // An error independent of x, such as an unknown name, is an error of the equation.
    if let Err(error @ (MathError::UnknownName { .. } | MathError::ArgumentCount { .. })) =
        evaluate(expression, Some(1.0))
    {
        return Err(error);
    }
    let f = |x: f64| evaluate(expression, Some(x)).unwrap_or(f64::NAN);
    let mut roots = Vec::new();
    let mut before: Option<(f64, f64)> = None;
    for x in -1000_i32..=1000 {
        let x = f64::from(x);
        let y = f(x);
        if y.abs() < 1e-10 {
            roots.push(x);
        } else if let Some((low, at_low)) = before
            && let Some(root) = between(low, x, f)
            // The sign changes at a pole, too, but there the value is not near zero.
            && f(root).abs() <= 1e-6 * (1.0 + at_low.abs().min(y.abs()))
        {
            roots.push(whole_if_exact(root, f));
        }
        before = y.is_finite().then_some((x, y));
    }
    Ok(roots)
}
