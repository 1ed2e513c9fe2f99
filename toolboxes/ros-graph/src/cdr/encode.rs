//! From values to bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::fault::Fault;
use super::wire::{Order, Wide};
use crate::definition::{Count, Primitive};
use crate::shape::{Element, Shape, ShapeField};

pub(super) struct Writer {
    bytes: Vec<u8>,
    order: Order,
    wide: Wide,
    /// Values that may still come.
    left: usize,
}

impl Writer {
    pub(super) fn new(order: Order, wide: Wide, left: usize) -> Self {
        Self {
            bytes: Vec::new(),
            order,
            wide,
            left,
        }
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(super) fn message(&mut self, shape: &Shape, value: &Value) -> Result<(), Fault> {
        let Value::Object(given) = value else {
            return Err(Fault::new(format!(
                "expected an object of {}, found {}",
                shape.name,
                kind(value)
            )));
        };
        if let Some(stranger) = given.keys().find(|name| shape.field(name).is_none()) {
            let fields: Vec<&str> = shape.fields.iter().map(|field| field.name.as_str()).collect();
            return Err(Fault::new(format!(
                "{} has no field `{stranger}`; it has {}",
                shape.name,
                if fields.is_empty() {
                    "none".to_owned()
                } else {
                    fields.join(", ")
                }
            )));
        }
        if shape.fields.is_empty() {
            // A message has at least one byte.
            self.bytes.push(0);
        }
        for field in &shape.fields {
            let written = match given.get(&field.name) {
                Some(value) => self.field(field, value),
                None => self.field(field, &field.zero()),
            };
            written.map_err(|fault| fault.within(&field.name))?;
        }
        Ok(())
    }

    fn field(&mut self, field: &ShapeField, value: &Value) -> Result<(), Fault> {
        if field.count == Count::One {
            return self.element(&field.of, value);
        }
        if field.of.is_byte()
            && let Value::String(text) = value
        {
            let bytes = STANDARD
                .decode(text)
                .map_err(|_| Fault::new("expected base64, or a list of numbers from 0 to 255"))?;
            self.count(1)?;
            self.length(field.count, bytes.len())?;
            self.bytes.extend(bytes);
            return Ok(());
        }
        let Value::Array(items) = value else {
            return Err(Fault::new(format!("expected a list, found {}", kind(value))));
        };
        self.length(field.count, items.len())?;
        for (index, item) in items.iter().enumerate() {
            self.element(&field.of, item).map_err(|fault| fault.at(index))?;
        }
        Ok(())
    }

    fn length(&mut self, count: Count, length: usize) -> Result<(), Fault> {
        match count {
            Count::Array(exact) if exact != length => {
                return Err(Fault::new(format!("expected {exact} elements, found {length}")));
            }
            Count::Sequence(Some(limit)) if length > limit => {
                return Err(Fault::new(format!(
                    "at most {limit} elements are allowed, found {length}"
                )));
            }
            Count::Array(_) | Count::One => return Ok(()),
            Count::Sequence(_) => {}
        }
        let length = u32::try_from(length).map_err(|_| Fault::size())?;
        self.number(length.to_le_bytes());
        Ok(())
    }

    fn count(&mut self, values: usize) -> Result<(), Fault> {
        self.left = self.left.checked_sub(values).ok_or_else(Fault::size)?;
        Ok(())
    }

    fn element(&mut self, of: &Element, value: &Value) -> Result<(), Fault> {
        self.count(1)?;
        match of {
            Element::Primitive(primitive) => self.primitive(*primitive, value),
            Element::Text(limit) => self.text(*limit, value),
            Element::WideText(limit) => self.wide_text(*limit, value),
            Element::Message(shape) => self.message(shape, value),
        }
    }

    /// A number whose bytes come the least first, aligned to its width.
    fn number<const WIDTH: usize>(&mut self, mut bytes: [u8; WIDTH]) {
        let padding = (WIDTH - self.bytes.len() % WIDTH) % WIDTH;
        self.bytes.extend(std::iter::repeat_n(0, padding));
        if self.order == Order::Big {
            bytes.reverse();
        }
        self.bytes.extend(bytes);
    }

    fn primitive(&mut self, primitive: Primitive, value: &Value) -> Result<(), Fault> {
        match primitive {
            Primitive::Bool => match value {
                Value::Bool(truth) => self.bytes.push((*truth).into()),
                _ => {
                    return Err(Fault::new(format!(
                        "expected true or false, found {}",
                        kind(value)
                    )));
                }
            },
            Primitive::Float64 => self.number(float(value)?.to_le_bytes()),
            Primitive::Float32 => {
                let number = float(value)?;
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "the nearest single is what the type holds"
                )]
                let single = number as f32;
                if single.is_infinite() && number.is_finite() {
                    return Err(Fault::new(format!("{number} is too large for float32")));
                }
                self.number(single.to_le_bytes());
            }
            Primitive::Text => self.text(None, value)?,
            _ => self.integer(primitive, value)?,
        }
        Ok(())
    }

    fn integer(&mut self, primitive: Primitive, value: &Value) -> Result<(), Fault> {
        let (low, high) = primitive.range();
        let number = integer(value).filter(|number| (low..=high).contains(number));
        let Some(number) = number else {
            return Err(Fault::new(format!(
                "expected a whole number from {low} to {high}, found {}",
                kind(value)
            )));
        };
        // The range was checked: the low bytes hold the number.
        let bytes = number.to_le_bytes();
        let low = |width: usize| &bytes[..width];
        match primitive {
            Primitive::Int16 | Primitive::Uint16 => self.number([low(2)[0], low(2)[1]]),
            Primitive::Int32 | Primitive::Uint32 => self.number([bytes[0], bytes[1], bytes[2], bytes[3]]),
            Primitive::Int64 | Primitive::Uint64 => {
                let mut eight = [0; 8];
                eight.copy_from_slice(low(8));
                self.number(eight);
            }
            _ => self.bytes.push(bytes[0]),
        }
        Ok(())
    }

    fn text(&mut self, limit: Option<usize>, value: &Value) -> Result<(), Fault> {
        let text = words(value)?;
        bounded(text.len(), limit)?;
        if text.contains('\0') {
            return Err(Fault::new("a text has no zero in it"));
        }
        let length = u32::try_from(text.len() + 1).map_err(|_| Fault::size())?;
        self.number(length.to_le_bytes());
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
        Ok(())
    }

    fn wide_text(&mut self, limit: Option<usize>, value: &Value) -> Result<(), Fault> {
        let units: Vec<u16> = words(value)?.encode_utf16().collect();
        bounded(units.len(), limit)?;
        let length = u32::try_from(units.len()).map_err(|_| Fault::size())?;
        self.number(length.to_le_bytes());
        for unit in units {
            match self.wide {
                Wide::Four => self.number(u32::from(unit).to_le_bytes()),
                Wide::Two => self.number(unit.to_le_bytes()),
            }
        }
        Ok(())
    }
}

fn words(value: &Value) -> Result<&str, Fault> {
    value
        .as_str()
        .ok_or_else(|| Fault::new(format!("expected a text, found {}", kind(value))))
}

fn bounded(length: usize, limit: Option<usize>) -> Result<(), Fault> {
    match limit {
        Some(limit) if length > limit => Err(Fault::new(format!(
            "a text of at most {limit} is allowed, found one of {length}"
        ))),
        _ => Ok(()),
    }
}

fn integer(value: &Value) -> Option<i128> {
    let Value::Number(number) = value else {
        return None;
    };
    if let Some(number) = number.as_i64() {
        return Some(number.into());
    }
    if let Some(number) = number.as_u64() {
        return Some(number.into());
    }
    // 2.0 is a whole number; past 2^53 a double no longer says which.
    let number = number
        .as_f64()
        .filter(|number| number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0)?;
    #[allow(
        clippy::cast_possible_truncation,
        reason = "it was checked to be a whole number of 53 bits"
    )]
    Some(number as i128)
}

fn float(value: &Value) -> Result<f64, Fault> {
    let number = match value {
        Value::Number(number) => number.as_f64().filter(|number| number.is_finite()),
        Value::String(name) => match name.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    };
    number.ok_or_else(|| {
        Fault::new(format!(
            "expected a number, \"NaN\", \"Infinity\" or \"-Infinity\", found {}",
            kind(value)
        ))
    })
}

/// What a value is, for an error, cut where it is long.
fn kind(value: &Value) -> String {
    let text = match value {
        Value::Object(_) => return "an object".to_owned(),
        Value::Array(_) => return "a list".to_owned(),
        other => other.to_string(),
    };
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}
