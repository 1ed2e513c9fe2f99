//! Values as rosbridge has them and as the codec has them. It is pure.

use serde_json::{Value, json};

use crate::cdr::{Cdr, Order};
use crate::definition::{Count, Primitive};
use crate::error::GraphError;
use crate::shape::{Element, Shape, ShapeField};

/// A value as the codec has it: strictly of the type, whole, `null` as NaN.
pub(super) fn canonical(cdr: Cdr, shape: &Shape, mut value: Value) -> Result<Value, GraphError> {
    without_nulls(shape, &mut value);
    let bytes = cdr.encode(shape, &value)?;
    Ok(cdr.decode(shape, &bytes, Order::Little)?)
}

fn without_nulls(shape: &Shape, value: &mut Value) {
    for field in &shape.fields {
        if let Some(value) = value.get_mut(&field.name) {
            field_without_nulls(field, value);
        }
    }
}

fn field_without_nulls(field: &ShapeField, value: &mut Value) {
    let one = |value: &mut Value| match &field.of {
        Element::Primitive(Primitive::Float32 | Primitive::Float64) if value.is_null() => {
            *value = json!("NaN")
        }
        Element::Message(shape) => without_nulls(shape, value),
        _ => {}
    };
    match (field.count, value) {
        (Count::One, value) => one(value),
        (_, Value::Array(items)) => items.iter_mut().for_each(one),
        _ => {}
    }
}

/// What is sent, whole and checked; an infinity cannot be.
pub(super) fn outgoing(cdr: Cdr, shape: &Shape, value: &Value) -> Result<Value, GraphError> {
    let bytes = cdr.encode(shape, value)?;
    let value = cdr.decode(shape, &bytes, Order::Little)?;
    match has_infinity(shape, &value) {
        true => Err(GraphError::Unsupported {
            carrier: "rosbridge",
            what: "carry NaN or an infinity".to_owned(),
        }),
        false => Ok(value),
    }
}

fn has_infinity(shape: &Shape, value: &Value) -> bool {
    let is = |field: &ShapeField, value: &Value| match &field.of {
        Element::Primitive(Primitive::Float32 | Primitive::Float64) => value.is_string(),
        Element::Message(shape) => has_infinity(shape, value),
        _ => false,
    };
    shape
        .fields
        .iter()
        .any(|field| match (&value[&field.name], field.count) {
            (value, Count::One) => is(field, value),
            (Value::Array(items), _) => items.iter().any(|item| is(field, item)),
            _ => false,
        })
}
