//! Types as the graph describes them: `type_description_interfaces`, which Jazzy and newer answer with, and the hash of
//! such a description, by which two definitions of one name are told apart (RIHS01).
//!
//! It is pure; what asks the graph is in the carriers. Read [`hash`] and [`definitions`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::definition::{Base, Count, Definition, Field, FieldType, Primitive, TypeName, is_word};
use crate::error::TypeError;
use crate::library::Library;

/// A message, a service or an action with everything in it has at most so many types in a description.
const TYPES: usize = 512;

/// The field that an empty message has in descriptions.
const FILLER: &str = "structure_needs_at_least_one_member";

/// The numbers that a description has in place of the names of types.
const NUMBERS: &[(Primitive, u64)] = &[
    (Primitive::Int8, 2),
    (Primitive::Uint8, 3),
    (Primitive::Int16, 4),
    (Primitive::Uint16, 5),
    (Primitive::Int32, 6),
    (Primitive::Uint32, 7),
    (Primitive::Int64, 8),
    (Primitive::Uint64, 9),
    (Primitive::Float32, 10),
    (Primitive::Float64, 11),
    (Primitive::Bool, 15),
    (Primitive::Byte, 16),
];
const NESTED: u64 = 1;
const CHAR: u64 = 13;
const TEXT: u64 = 17;
const WIDE_TEXT: u64 = 18;
const BOUNDED_TEXT: u64 = 21;
const BOUNDED_WIDE_TEXT: u64 = 22;
const ARRAY: u64 = 48;
const BOUNDED_SEQUENCE: u64 = 96;
const SEQUENCE: u64 = 144;

/// The hash of a message, a service or an action: `RIHS01_` and 64 hexadecimal digits.
///
/// # Errors
/// The type, or one that it contains, is not known.
pub fn hash(library: &Library, name: &TypeName) -> Result<String, TypeError> {
    let mut inner = BTreeSet::new();
    collect(library, name, None, &mut inner)?;
    inner.remove(name);
    // In the order of their whole names, in which an action comes before a message.
    let mut inner: Vec<TypeName> = inner.into_iter().collect();
    inner.sort_by_key(TypeName::to_string);
    let described = |name: &TypeName| library.definition(name).map(describe).unwrap_or_default();
    let whole = json!({
        "type_description": described(name),
        "referenced_type_descriptions": inner.iter().map(described).collect::<Vec<Value>>(),
    });
    let mut text = String::new();
    spaced(&whole, &mut text);
    let mut hash = "RIHS01_".to_owned();
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hash, "{byte:02x}");
    }
    Ok(hash)
}

/// All types that lie in one, with itself.
fn collect(
    library: &Library,
    name: &TypeName,
    by: Option<&TypeName>,
    known: &mut BTreeSet<TypeName>,
) -> Result<(), TypeError> {
    if !known.insert(name.clone()) {
        return Ok(());
    }
    let definition = library.definition(name).ok_or_else(|| TypeError::Unknown {
        name: name.to_string(),
        by: by.map(TypeName::to_string),
    })?;
    for field in &definition.fields {
        if let Base::Message(inner) = &field.of.base {
            collect(library, inner, Some(name), known)?;
        }
    }
    Ok(())
}

fn describe(definition: &Definition) -> Value {
    let mut fields: Vec<Value> = definition.fields.iter().map(described_field).collect();
    if fields.is_empty() {
        let uint8 = json!({"type_id": 3, "capacity": 0, "string_capacity": 0, "nested_type_name": ""});
        fields.push(json!({"name": FILLER, "type": uint8}));
    }
    json!({"type_name": definition.name.to_string(), "fields": fields})
}

fn described_field(field: &Field) -> Value {
    let (number, limit, nested) = match &field.of.base {
        Base::Primitive(primitive) => {
            let number = NUMBERS.iter().find(|(known, _)| known == primitive);
            (number.map_or(0, |(_, number)| *number), 0, String::new())
        }
        Base::Text(None) => (TEXT, 0, String::new()),
        Base::Text(Some(limit)) => (BOUNDED_TEXT, *limit, String::new()),
        Base::WideText(None) => (WIDE_TEXT, 0, String::new()),
        Base::WideText(Some(limit)) => (BOUNDED_WIDE_TEXT, *limit, String::new()),
        Base::Message(name) => (NESTED, 0, name.to_string()),
    };
    let (offset, capacity) = match field.of.count {
        Count::One => (0, 0),
        Count::Array(length) => (ARRAY, length),
        Count::Sequence(Some(limit)) => (BOUNDED_SEQUENCE, limit),
        Count::Sequence(None) => (SEQUENCE, 0),
    };
    let of = json!({
        "type_id": number + offset, "capacity": capacity, "string_capacity": limit, "nested_type_name": nested
    });
    json!({"name": field.name, "type": of})
}

/// With a blank after each comma and colon, which is what is hashed.
fn spaced(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            for (index, (name, value)) in fields.iter().enumerate() {
                text.push_str(if index == 0 { "{" } else { ", " });
                let _ = write!(text, "{}: ", Value::from(name.as_str()));
                spaced(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                spaced(item, text);
            }
            text.push(']');
        }
        other => {
            let _ = write!(text, "{other}");
        }
    }
}

/// The messages of a description, which is the value of a `type_description_interfaces/msg/TypeDescription`.
///
/// # Errors
/// The description makes no sense: a name that is none, a number without a type, too many types.
pub fn definitions(description: &Value) -> Result<Vec<Definition>, TypeError> {
    let whole = &description["type_description"];
    let name = whole["type_name"].as_str().unwrap_or_default();
    let wrong = |reason: String| TypeError::Description {
        name: name.chars().take(100).collect(),
        reason,
    };
    let inner = description["referenced_type_descriptions"]
        .as_array()
        .ok_or_else(|| wrong("no list of referenced_type_descriptions".to_owned()))?;
    if inner.len() > TYPES {
        return Err(wrong(format!("{} types, at most {TYPES} are read", inner.len())));
    }
    let all = std::iter::once(whole).chain(inner);
    let read = all.map(|described| definition(described).map_err(wrong));
    let read = read.collect::<Result<Vec<Definition>, TypeError>>()?;
    // One entry for each name.
    let by_name: BTreeMap<TypeName, Definition> = read
        .into_iter()
        .map(|definition| (definition.name.clone(), definition))
        .collect();
    Ok(by_name.into_values().collect())
}

fn definition(described: &Value) -> Result<Definition, String> {
    let name = described["type_name"].as_str().ok_or("no type_name")?;
    let name: TypeName = name.parse().map_err(|error: TypeError| error.to_string())?;
    let fields = described["fields"].as_array().ok_or("no fields")?;
    let fields = fields.iter().filter(|field| field["name"] != FILLER);
    Ok(Definition {
        name,
        fields: fields.map(read_field).collect::<Result<Vec<Field>, String>>()?,
        constants: Vec::new(),
    })
}

fn read_field(described: &Value) -> Result<Field, String> {
    let name = described["name"]
        .as_str()
        .filter(|name| is_word(name))
        .ok_or("a field without a name")?;
    let of = &described["type"];
    let number = of["type_id"].as_u64().ok_or("a field without a type_id")?;
    let size = |key: &str| {
        of[key]
            .as_u64()
            .and_then(|size| usize::try_from(size).ok())
            .unwrap_or_default()
    };
    let (number, count) = match number {
        0..ARRAY => (number, Count::One),
        ARRAY..BOUNDED_SEQUENCE => (number - ARRAY, Count::Array(size("capacity"))),
        BOUNDED_SEQUENCE..SEQUENCE => (number - BOUNDED_SEQUENCE, Count::Sequence(Some(size("capacity")))),
        _ => (number - SEQUENCE, Count::Sequence(None)),
    };
    let base = match number {
        NESTED => {
            let nested = of["nested_type_name"].as_str().unwrap_or_default();
            Base::Message(nested.parse().map_err(|error: TypeError| error.to_string())?)
        }
        CHAR => Base::Primitive(Primitive::Uint8),
        TEXT => Base::Text(None),
        WIDE_TEXT => Base::WideText(None),
        BOUNDED_TEXT => Base::Text(Some(size("string_capacity"))),
        BOUNDED_WIDE_TEXT => Base::WideText(Some(size("string_capacity"))),
        _ => {
            let known = NUMBERS.iter().find(|(_, known)| *known == number);
            let (primitive, _) = known
                .ok_or_else(|| format!("{name} has a type of the number {number}, which is not known"))?;
            Base::Primitive(*primitive)
        }
    };
    Ok(Field {
        name: name.to_owned(),
        of: FieldType { base, count },
        default: None,
        comment: String::new(),
    })
}

#[cfg(test)]
#[path = "description_tests.rs"]
mod tests;
