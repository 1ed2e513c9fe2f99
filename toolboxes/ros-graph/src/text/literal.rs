//! The values of constants and defaults, as they are written.

use serde_json::{Number, Value};

use crate::definition::{Base, Count, FieldType, Primitive};

/// The default of a field: a list in brackets where it has more than one element.
pub(super) fn of_field(of: &FieldType, text: &str) -> Result<Value, String> {
    if of.count == Count::One {
        return of_base(&of.base, text);
    }
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .ok_or("the default of several elements is a list: [1, 2]")?;
    let items = split(inner)
        .into_iter()
        .map(|item| of_base(&of.base, item))
        .collect::<Result<Vec<Value>, String>>()?;
    let fits = match of.count {
        Count::Array(length) => items.len() == length,
        Count::Sequence(Some(limit)) => items.len() <= limit,
        Count::Sequence(None) | Count::One => true,
    };
    match fits {
        true => Ok(Value::Array(items)),
        false => Err(format!("{} elements do not fit the type", items.len())),
    }
}

/// Between the commas outside quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut items, mut quote, mut from) = (Vec::new(), None, 0);
    for (at, letter) in text.char_indices() {
        match quote {
            Some(open) if open == letter => quote = None,
            Some(_) => {}
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            None if letter == ',' => {
                items.push(text[from..at].trim());
                from = at + 1;
            }
            None => {}
        }
    }
    items.push(text[from..].trim());
    items.retain(|item| !item.is_empty());
    items
}

/// One value.
pub(super) fn of_base(base: &Base, text: &str) -> Result<Value, String> {
    match base {
        Base::Text(_) | Base::WideText(_) => Ok(Value::from(unquoted(text))),
        Base::Message(_) => Err("a message has no default of its own".to_owned()),
        Base::Primitive(primitive) => number(*primitive, text),
    }
}

fn unquoted(text: &str) -> String {
    for quote in ['"', '\''] {
        let inner = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner.replace(&format!("\\{quote}"), &quote.to_string());
        }
    }
    text.to_owned()
}

fn number(primitive: Primitive, text: &str) -> Result<Value, String> {
    let wrong = || {
        format!(
            "`{text}` is not a value of type {}, expected {}",
            primitive.word(),
            form(primitive)
        )
    };
    match primitive {
        Primitive::Bool => match text {
            "true" | "True" | "1" => Ok(Value::from(true)),
            "false" | "False" | "0" => Ok(Value::from(false)),
            _ => Err(wrong()),
        },
        Primitive::Float32 | Primitive::Float64 => {
            let number: f64 = text.parse().map_err(|_| wrong())?;
            Ok(match Number::from_f64(number) {
                Some(number) => Value::Number(number),
                None if number.is_nan() => Value::from("NaN"),
                None if number > 0.0 => Value::from("Infinity"),
                None => Value::from("-Infinity"),
            })
        }
        Primitive::Text => Ok(Value::from(unquoted(text))),
        _ => {
            let value = integer(text).ok_or_else(wrong)?;
            let (low, high) = primitive.range();
            match (low..=high).contains(&value) {
                true if value < 0 => i64::try_from(value).map(Value::from).map_err(|_| wrong()),
                true => u64::try_from(value).map(Value::from).map_err(|_| wrong()),
                false => Err(wrong()),
            }
        }
    }
}

/// How a number of this type is written.
fn form(primitive: Primitive) -> String {
    match primitive {
        Primitive::Bool => "true or false".to_owned(),
        Primitive::Float32 | Primitive::Float64 => "a number such as 1.5".to_owned(),
        Primitive::Text => "a text".to_owned(),
        _ => {
            let (low, high) = primitive.range();
            format!("a whole number from {low} to {high}")
        }
    }
}

/// Decimal, or with the prefix 0x, 0b or 0o.
fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let parsed = [("0x", 16), ("0X", 16), ("0b", 2), ("0o", 8)]
        .into_iter()
        .find_map(|(prefix, radix)| {
            digits
                .strip_prefix(prefix)
                .map(|digits| i128::from_str_radix(digits, radix))
        })
        .unwrap_or_else(|| digits.parse());
    parsed.ok().map(|value| sign * value)
}
