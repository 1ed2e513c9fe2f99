//! A message with everything that lies in it, ready to be read and written.
//!
//! A shape is made once for a type by the library and shared. Read [`Shape`].

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::definition::{Count, Primitive, TypeName};

/// A message type, resolved down to primitives.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its full name.
    pub name: TypeName,
    /// The fields in the order of the wire; none where the message is empty.
    pub fields: Vec<ShapeField>,
    /// The fewest bytes that one takes, padding left out; at least 1.
    pub(crate) least: usize,
}

/// A field with its type resolved.
#[derive(Clone, Debug)]
pub struct ShapeField {
    /// Its name.
    pub name: String,
    /// The type of one element.
    pub of: Element,
    /// How many there are.
    pub count: Count,
    /// What is written where a sender gives none; zero without it.
    pub default: Option<Value>,
}

/// The type of one element.
#[derive(Clone, Debug)]
pub enum Element {
    /// A number or a truth value.
    Primitive(Primitive),
    /// A text of UTF-8, of at most so many bytes.
    Text(Option<usize>),
    /// A text of UTF-16, of at most so many units.
    WideText(Option<usize>),
    /// Another message.
    Message(Arc<Shape>),
}

impl Element {
    /// The fewest bytes that one takes.
    pub(crate) fn least(&self) -> usize {
        match self {
            Self::Primitive(primitive) => width(*primitive),
            Self::Text(_) | Self::WideText(_) => 4,
            Self::Message(shape) => shape.least,
        }
    }

    /// Whether several of them are one text of base64 in JSON, as rosbridge has them.
    #[must_use]
    pub fn is_byte(&self) -> bool {
        matches!(self, Self::Primitive(Primitive::Byte | Primitive::Uint8))
    }
}

/// The bytes of a primitive, to which it is also aligned.
pub(crate) fn width(primitive: Primitive) -> usize {
    match primitive {
        Primitive::Int16 | Primitive::Uint16 => 2,
        Primitive::Int32 | Primitive::Uint32 | Primitive::Float32 | Primitive::Text => 4,
        Primitive::Int64 | Primitive::Uint64 | Primitive::Float64 => 8,
        _ => 1,
    }
}

impl Shape {
    /// A shape of these fields.
    pub(crate) fn new(name: TypeName, fields: Vec<ShapeField>) -> Self {
        let least = fields.iter().map(|field| match field.count {
            Count::One => field.of.least(),
            Count::Array(length) => field.of.least().saturating_mul(length),
            Count::Sequence(_) => 4,
        });
        let least = least.fold(0, usize::saturating_add).max(1);
        Self { name, fields, least }
    }

    /// The field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&ShapeField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The value that stands where nothing was given: defaults, and zero elsewhere.
    #[must_use]
    pub fn zero(&self) -> Value {
        let fields = self.fields.iter().map(|field| (field.name.clone(), field.zero()));
        Value::Object(fields.collect::<Map<String, Value>>())
    }
}

impl ShapeField {
    /// The default of the field.
    #[must_use]
    pub fn zero(&self) -> Value {
        if let Some(default) = &self.default {
            return default.clone();
        }
        match self.count {
            Count::One => zero(&self.of),
            Count::Sequence(_) if self.of.is_byte() => Value::from(""),
            Count::Sequence(_) => Value::Array(Vec::new()),
            Count::Array(length) if self.of.is_byte() => Value::from(STANDARD.encode(vec![0; length])),
            Count::Array(length) => Value::Array(vec![zero(&self.of); length]),
        }
    }
}

fn zero(of: &Element) -> Value {
    match of {
        Element::Primitive(Primitive::Bool) => Value::from(false),
        Element::Primitive(Primitive::Float32 | Primitive::Float64) => Value::from(0.0),
        Element::Primitive(_) => Value::from(0),
        Element::Text(_) | Element::WideText(_) => Value::from(""),
        Element::Message(shape) => shape.zero(),
    }
}
