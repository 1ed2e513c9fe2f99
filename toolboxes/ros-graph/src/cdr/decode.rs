//! From bytes to values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use super::fault::Fault;
use super::wire::{Order, Wide};
use crate::definition::{Count, Primitive};
use crate::shape::{Element, Shape, ShapeField};

pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    order: Order,
    wide: Wide,
    /// Values that may still come.
    left: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], order: Order, wide: Wide, left: usize) -> Self {
        Self {
            bytes,
            at: 0,
            order,
            wide,
            left,
        }
    }

    /// Nothing but padding follows.
    pub(super) fn end(&self) -> Result<(), Fault> {
        match self.bytes.len() - self.at {
            0..=3 => Ok(()),
            rest => Err(Fault::new(format!("{rest} bytes follow the message"))),
        }
    }

    pub(super) fn message(&mut self, shape: &Shape) -> Result<Value, Fault> {
        if shape.fields.is_empty() {
            // A message has at least one byte.
            self.take(1)?;
            return Ok(Value::Object(Map::new()));
        }
        let mut fields = Map::with_capacity(shape.fields.len());
        for field in &shape.fields {
            let value = self.field(field).map_err(|fault| fault.within(&field.name))?;
            fields.insert(field.name.clone(), value);
        }
        Ok(Value::Object(fields))
    }

    fn field(&mut self, field: &ShapeField) -> Result<Value, Fault> {
        let length = match field.count {
            Count::One => return self.element(&field.of),
            Count::Array(length) => length,
            Count::Sequence(limit) => {
                let length = self.length()?;
                if let Some(limit) = limit.filter(|limit| length > *limit) {
                    return Err(Fault::new(format!(
                        "{length} elements, where at most {limit} are allowed"
                    )));
                }
                length
            }
        };
        if field.of.is_byte() {
            self.count(1)?;
            return Ok(Value::from(STANDARD.encode(self.take(length)?)));
        }
        let least = length.checked_mul(field.of.least());
        if least.is_none_or(|least| least > self.bytes.len() - self.at) {
            return Err(Fault::new(format!(
                "{length} elements do not fit the bytes that are left"
            )));
        }
        if length > self.left {
            return Err(Fault::size());
        }
        let mut items = Vec::with_capacity(length);
        for index in 0..length {
            items.push(self.element(&field.of).map_err(|fault| fault.at(index))?);
        }
        Ok(Value::Array(items))
    }

    fn element(&mut self, of: &Element) -> Result<Value, Fault> {
        self.count(1)?;
        match of {
            Element::Primitive(primitive) => self.primitive(*primitive),
            Element::Text(limit) => self.text(*limit).map(Value::from),
            Element::WideText(limit) => self.wide_text(*limit).map(Value::from),
            Element::Message(shape) => self.message(shape),
        }
    }

    fn count(&mut self, values: usize) -> Result<(), Fault> {
        self.left = self.left.checked_sub(values).ok_or_else(Fault::size)?;
        Ok(())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let rest = self.bytes.len() - self.at;
        let Some(taken) = self.bytes[self.at..].get(..length) else {
            return Err(Fault::new(format!("{length} bytes are needed, {rest} are left")));
        };
        self.at += length;
        Ok(taken)
    }

    /// The bytes of a number, the least first.
    fn number<const WIDTH: usize>(&mut self) -> Result<[u8; WIDTH], Fault> {
        let padding = (WIDTH - self.at % WIDTH) % WIDTH;
        self.take(padding)?;
        let mut bytes = [0; WIDTH];
        bytes.copy_from_slice(self.take(WIDTH)?);
        if self.order == Order::Big {
            bytes.reverse();
        }
        Ok(bytes)
    }

    fn length(&mut self) -> Result<usize, Fault> {
        let length = u32::from_le_bytes(self.number()?);
        usize::try_from(length).map_err(|_| Fault::size())
    }

    fn primitive(&mut self, primitive: Primitive) -> Result<Value, Fault> {
        Ok(match primitive {
            Primitive::Bool => match self.take(1)? {
                [0] => Value::from(false),
                [1] => Value::from(true),
                other => return Err(Fault::new(format!("{} is not a bool, expected 0 or 1", other[0]))),
            },
            Primitive::Byte | Primitive::Uint8 => Value::from(self.take(1)?[0]),
            Primitive::Int8 => Value::from(i8::from_le_bytes(self.number()?)),
            Primitive::Int16 => Value::from(i16::from_le_bytes(self.number()?)),
            Primitive::Uint16 => Value::from(u16::from_le_bytes(self.number()?)),
            Primitive::Int32 => Value::from(i32::from_le_bytes(self.number()?)),
            Primitive::Uint32 => Value::from(u32::from_le_bytes(self.number()?)),
            Primitive::Int64 => Value::from(i64::from_le_bytes(self.number()?)),
            Primitive::Uint64 => Value::from(u64::from_le_bytes(self.number()?)),
            Primitive::Float32 => single(f32::from_le_bytes(self.number()?)),
            Primitive::Float64 => double(f64::from_le_bytes(self.number()?)),
            Primitive::Text => Value::from(self.text(None)?),
        })
    }

    fn text(&mut self, limit: Option<usize>) -> Result<String, Fault> {
        let length = self.length()?;
        let bytes = self.take(length)?;
        let text = match bytes {
            // Some writers have no zero after an empty text.
            [] => bytes,
            [text @ .., 0] => text,
            _ => return Err(Fault::new("a string that does not end with a zero byte")),
        };
        within(text.len(), limit)?;
        match std::str::from_utf8(text) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(Fault::new("a string that is not UTF-8")),
        }
    }

    fn wide_text(&mut self, limit: Option<usize>) -> Result<String, Fault> {
        let length = self.length()?;
        within(length, limit)?;
        let width = match self.wide {
            Wide::Four => 4,
            Wide::Two => 2,
        };
        let bytes = self.take(length.checked_mul(width).ok_or_else(Fault::size)?)?;
        let unit = |bytes: &[u8]| {
            let mut unit = [0; 4];
            unit[..width].copy_from_slice(bytes);
            if self.order == Order::Big {
                unit[..width].reverse();
            }
            u16::try_from(u32::from_le_bytes(unit))
        };
        let units = bytes
            .chunks_exact(width)
            .map(unit)
            .collect::<Result<Vec<u16>, _>>();
        let units = units.map_err(|_| Fault::new("a string that is not UTF-16"))?;
        String::from_utf16(&units).map_err(|_| Fault::new("a string that is not UTF-16"))
    }
}

fn within(length: usize, limit: Option<usize>) -> Result<(), Fault> {
    match limit {
        Some(limit) if length > limit => Err(Fault::new(format!(
            "a text of {length}, where at most {limit} are allowed"
        ))),
        _ => Ok(()),
    }
}

/// A number as JSON has it, or its name.
fn double(number: f64) -> Value {
    match Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number.is_nan() => Value::from("NaN"),
        None if number > 0.0 => Value::from("Infinity"),
        None => Value::from("-Infinity"),
    }
}

/// With the digits of a single: 0.1, not 0.10000000149.
fn single(number: f32) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e6 {
        return double(number.into());
    }
    double(number.to_string().parse().unwrap_or_else(|_| number.into()))
}
