//! One line of a definition.

use super::literal;
use crate::definition::{Base, Constant, Count, Field, FieldType, Kind, Primitive, TypeName, is_word};

pub(super) enum Line {
    Field(Field),
    Constant(Constant),
}

/// What stands before a `#` outside quotes, and the comment after it.
pub(super) fn split_comment(line: &str) -> (&str, Option<&str>) {
    let mut quote = None;
    let mut escaped = false;
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            (_, _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '#') => {
                return (
                    line[..at].trim_end(),
                    Some(line[at..].trim_matches(['#', ' ', '\t'])),
                );
            }
            (None, _) => {}
        }
    }
    match quote {
        // An apostrophe in an unquoted text: the first `#` ends the line.
        Some(_) => match line.split_once('#') {
            Some((written, comment)) => (written.trim_end(), Some(comment.trim_matches(['#', ' ', '\t']))),
            None => (line, None),
        },
        None => (line, None),
    }
}

/// A field or a constant of an interface.
pub(super) fn read(written: &str, owner: &TypeName) -> Result<Line, String> {
    let (of, rest) = written
        .split_once([' ', '\t'])
        .ok_or("expected a type and a name")?;
    let of = field_type(of, owner)?;
    let rest = rest.trim();
    let end = rest
        .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
        .unwrap_or(rest.len());
    let (name, after) = (&rest[..end], rest[end..].trim());
    if !is_word(name) {
        return Err("expected a name after the type".to_owned());
    }
    if let Some(value) = after.strip_prefix('=') {
        return constant(name, &of, value.trim());
    }
    if !after.is_empty() && !rest[end..].starts_with([' ', '\t']) {
        return Err("expected a blank after the name".to_owned());
    }
    let default = match after {
        "" => None,
        text => Some(literal::of_field(&of, text)?),
    };
    Ok(Line::Field(Field {
        name: name.to_owned(),
        of,
        default,
        comment: String::new(),
    }))
}

fn constant(name: &str, of: &FieldType, value: &str) -> Result<Line, String> {
    let primitive = match of {
        FieldType {
            base: Base::Primitive(primitive),
            count: Count::One,
        } => *primitive,
        FieldType {
            base: Base::Text(_) | Base::WideText(_),
            count: Count::One,
        } => Primitive::Text,
        _ => return Err("a constant is a number, a truth value or a text".to_owned()),
    };
    Ok(Line::Constant(Constant {
        name: name.to_owned(),
        of: primitive,
        value: literal::of_base(&of.base, value)?,
    }))
}

/// `string<=5[<=2]`, `geometry_msgs/Pose[]`, `float64[36]`.
fn field_type(text: &str, owner: &TypeName) -> Result<FieldType, String> {
    let (base, count) = match text.split_once('[') {
        None => (text, Count::One),
        Some((base, count)) => {
            let count = count
                .strip_suffix(']')
                .ok_or("expected ] at the end of the type")?;
            let count = match count.strip_prefix("<=") {
                Some(limit) => Count::Sequence(Some(number(limit)?)),
                None if count.is_empty() => Count::Sequence(None),
                None => Count::Array(number(count)?),
            };
            (base, count)
        }
    };
    Ok(FieldType {
        base: base_type(base, owner)?,
        count,
    })
}

/// Lengths that no robot has are mistakes.
const LONGEST: usize = 1 << 28;

fn number(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=LONGEST).contains(&number) => Ok(number),
        _ => Err(format!("expected a length from 1 to {LONGEST}")),
    }
}

fn base_type(text: &str, owner: &TypeName) -> Result<Base, String> {
    let bound = |text: &str| match text.strip_prefix("<=") {
        Some(limit) => number(limit).map(Some),
        None if text.is_empty() => Ok(None),
        None => Err("expected string or string<=LENGTH".to_owned()),
    };
    if let Some(rest) = text.strip_prefix("wstring") {
        return bound(rest).map(Base::WideText);
    }
    if let Some(rest) = text.strip_prefix("string") {
        return bound(rest).map(Base::Text);
    }
    let primitive = match text {
        "bool" | "boolean" => Primitive::Bool,
        "byte" | "octet" => Primitive::Byte,
        // A `char` of a .msg file is an unsigned byte.
        "uint8" | "char" => Primitive::Uint8,
        "int8" => Primitive::Int8,
        "int16" => Primitive::Int16,
        "uint16" => Primitive::Uint16,
        "int32" => Primitive::Int32,
        "uint32" => Primitive::Uint32,
        "int64" => Primitive::Int64,
        "uint64" => Primitive::Uint64,
        "float32" | "float" => Primitive::Float32,
        "float64" | "double" => Primitive::Float64,
        _ => return message(text, owner),
    };
    Ok(Base::Primitive(primitive))
}

fn message(text: &str, owner: &TypeName) -> Result<Base, String> {
    let name = match text {
        "Header" => TypeName::new("std_msgs", Kind::Message, "Header"),
        _ if is_word(text) => TypeName::new(&owner.package, Kind::Message, text),
        _ => text.parse().map_err(|_| format!("`{text}` is not a type"))?,
    };
    Ok(Base::Message(name))
}
