//! Lax conversion of single values, by the rules of pydantic-core 2 (`tests/data/pydantic_lax.json` is the proof).
//!
//! A number is handled as its JSON text, because the service keeps every digit. As in Python, a number without fraction
//! and exponent is an integer.

use serde_json::{Number, Value};

/// The largest number of digits of an integer: Python's own limit (`sys.int_info.default_max_str_digits`).
pub(super) const MAX_DIGITS: usize = 4300;

/// How well a value fits a type, from worst to best; pydantic's smart unions prefer the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Exactness {
    Lax,
    Strict,
    Exact,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScalarType {
    Null,
    Boolean,
    Integer,
    Number,
    String,
}

/// A value that fits: unchanged, or converted.
#[derive(Debug)]
pub(super) enum FittedValue {
    Same,
    New(Value),
}

/// Converts a value to a type; `None` when lax mode refuses the value. With
/// `flags_are_numbers`, `true` and `false` are the numbers 1 and 0, as in Python.
pub(super) fn convert(
    kind: ScalarType,
    value: &Value,
    flags_are_numbers: bool,
) -> Option<(FittedValue, Exactness)> {
    match (kind, value) {
        (ScalarType::Integer | ScalarType::Number, Value::Bool(_)) if !flags_are_numbers => None,
        (ScalarType::Null, Value::Null)
        | (ScalarType::Boolean, Value::Bool(_))
        | (ScalarType::String, Value::String(_)) => Some((FittedValue::Same, Exactness::Exact)),
        (ScalarType::Integer, _) => integer(value),
        (ScalarType::Number, _) => number(value),
        (ScalarType::Boolean, _) => boolean(value).map(lax),
        _ => None,
    }
}

fn lax(value: impl Into<Value>) -> (FittedValue, Exactness) {
    (FittedValue::New(value.into()), Exactness::Lax)
}

fn integer(value: &Value) -> Option<(FittedValue, Exactness)> {
    match value {
        Value::Number(number) if is_integer_text(number.as_str()) => Some((
            if number.as_str() == "-0" {
                FittedValue::New(0.into())
            } else {
                FittedValue::Same
            },
            Exactness::Exact,
        )),
        Value::Number(number) => {
            let float: f64 = number.as_str().parse().ok()?;
            // 2^63: from there on pydantic refuses floats, because their low digits are not what the sender meant.
            (float.fract() == 0.0 && float.abs() < 9_223_372_036_854_775_808.0).then(|| lax(float as i64))
        }
        Value::Bool(flag) => Some(lax(i64::from(*flag))),
        Value::String(text) => integer_text(text).map(lax),
        _ => None,
    }
}

/// Whether a value that [`convert`] refuses as an integer is a float without a fraction, and is refused only for its size.
pub(super) fn is_oversized_float(value: &Value) -> bool {
    matches!(value, Value::Number(number) if !is_integer_text(number.as_str())
        && number.as_str().parse::<f64>().is_ok_and(|float| float.fract() == 0.0))
}

fn number(value: &Value) -> Option<(FittedValue, Exactness)> {
    match value {
        Value::Number(number) if is_integer_text(number.as_str()) => {
            let float = Number::from_f64(number.as_str().parse().ok()?)?;
            Some((FittedValue::New(Value::Number(float)), Exactness::Strict))
        }
        Value::Number(number) => {
            let tidied = tidy(number)?;
            Some((
                tidied.map_or(FittedValue::Same, |number| {
                    FittedValue::New(Value::Number(number))
                }),
                Exactness::Exact,
            ))
        }
        Value::Bool(flag) => Number::from_f64(f64::from(*flag)).map(Value::Number).map(lax),
        Value::String(text) => {
            let text = text.trim();
            let float = text
                .parse()
                .ok()
                .or_else(|| without_underscores(text)?.parse().ok())?;
            // `nan` and `inf` parse but are not JSON, so they must not reach a toolbox.
            Number::from_f64(float).map(Value::Number).map(lax)
        }
        _ => None,
    }
}

fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Number(number) => match number.as_str().parse::<f64>().ok()? {
            0.0 => Some(false),
            1.0 => Some(true),
            _ => None,
        },
        Value::String(text) if text.len() <= 5 => match text.to_ascii_lowercase().as_str() {
            "0" | "off" | "f" | "false" | "n" | "no" => Some(false),
            "1" | "on" | "t" | "true" | "y" | "yes" => Some(true),
            _ => None,
        },
        _ => None,
    }
}

/// Parses `[+-]digits[.0...]`, with single underscores between digits and white space around.
fn integer_text(text: &str) -> Option<Value> {
    let text = text.trim();
    let (sign, text) = match text.as_bytes().first()? {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => whole,
        Some(_) => return None,
        None => text,
    };
    let mut digits = String::with_capacity(whole.len() + 1);
    digits.push_str(sign);
    let mut after_digit = false;
    for byte in whole.bytes() {
        match byte {
            b'0' if digits.len() == sign.len() => {} // leading zero
            b'0'..=b'9' => digits.push(char::from(byte)),
            b'_' if after_digit => {}
            _ => return None,
        }
        after_digit = byte != b'_';
    }
    if !after_digit || digits.len() > MAX_DIGITS {
        return None;
    }
    if digits.len() == sign.len() {
        return Some(0.into());
    }
    digits.parse::<Number>().ok().map(Value::Number)
}

fn without_underscores(text: &str) -> Option<String> {
    let misplaced = text.starts_with('_') || text.ends_with('_') || text.contains("__");
    (!misplaced && text.contains('_')).then(|| text.replace('_', ""))
}

/// Whether the JSON text of a number has neither fraction nor exponent.
pub(super) fn is_integer_text(text: &str) -> bool {
    !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
}

/// The number in the form that is passed on: `Some(None)` unchanged, `Some(Some(_))` rewritten, `None` when it is
/// refused: not finite, or an integer whose text is longer than [`MAX_DIGITS`] digits and a sign.
///
/// A float with a long text is rounded to a double, as every JSON reader in Python does: the validator works with exact
/// fractions, and `1e-999999999` would cost it gigabytes.
#[expect(
    clippy::option_option,
    reason = "refused, unchanged and changed are three answers of one question"
)]
pub(super) fn tidy(number: &Number) -> Option<Option<Number>> {
    let text = number.as_str();
    if is_integer_text(text) {
        return (text.len() <= MAX_DIGITS + 1).then(|| (text == "-0").then(|| 0.into()));
    }
    let float: f64 = text.parse().ok()?;
    if !float.is_finite() {
        return None;
    }
    let short = text.len() <= 24 && !text.bytes().any(|byte| matches!(byte, b'e' | b'E'));
    if short {
        Some(None)
    } else {
        Number::from_f64(float).map(Some)
    }
}

/// Equality of JSON values for `enum` and `const`: numbers are compared by value, so `1` equals `1.0`.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => {
            a == b
                || !(is_integer_text(a.as_str()) && is_integer_text(b.as_str()))
                    && a.as_str().parse::<f64>().ok() == b.as_str().parse::<f64>().ok()
        }
        _ => left == right,
    }
}

/// Equality of Python's dictionary keys: like [`same`], and a boolean equals its number.
pub(super) fn same_key(left: &Value, right: &Value) -> bool {
    let as_number = |value: &Value| match value {
        Value::Bool(flag) => Value::from(i64::from(*flag)),
        other => other.clone(),
    };
    match (left, right) {
        (Value::Bool(_), Value::Number(_)) | (Value::Number(_), Value::Bool(_)) => {
            same(&as_number(left), &as_number(right))
        }
        _ => same(left, right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(kind: ScalarType, text: &str, expected: Option<Value>) {
        let value: Value = serde_json::from_str(text).unwrap();
        let found = convert(kind, &value, true).map(|(fitted, _)| match fitted {
            FittedValue::Same => value,
            FittedValue::New(value) => value,
        });
        assert_eq!(found, expected, "{kind:?} {text}");
    }

    #[test]
    fn integers() {
        for (text, expected) in [
            ("\" 1_000.00 \"", Some(json!(1000))),
            ("\"+007\"", Some(json!(7))),
            ("\"-0\"", Some(json!(0))),
            ("-0", Some(json!(0))),
            ("\"1__0\"", None),
            ("\"-_1\"", None),
            ("\"1_.0\"", None),
            ("\"\"", None),
            ("\"+\"", None),
            ("\"1.\"", None),
            ("\"\u{0663}\"", None),
            ("2.0", Some(json!(2))),
            ("1e3", Some(json!(1000))),
            ("1.5", None),
            ("1e20", None),
            ("1e999", None),
            ("null", None),
        ] {
            check(ScalarType::Integer, text, expected);
        }
    }

    #[test]
    fn numbers_stay_finite() {
        for text in ["\"nan\"", "\"-inf\"", "\"1e400\"", "1e400", "null", "[]"] {
            check(ScalarType::Number, text, None);
        }
        check(ScalarType::Number, "\"-_1\"", Some(json!(-1.0)));
        check(ScalarType::Number, "1e-999999999", Some(json!(0.0)));
        check(ScalarType::Number, "2", Some(json!(2.0)));
    }
}
