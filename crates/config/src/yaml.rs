//! Parses YAML into JSON values: keeps integers beyond 64 bits, turns keys into texts, applies `<<`, refuses tags.

use std::fmt;

use serde::de::{Deserialize, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses one document.
pub(super) fn parse(text: &str) -> Result<Value, serde_norway::Error> {
    serde_norway::from_str(text).map(|Tree(value)| value)
}

struct Tree(Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TreeVisitor).map(Self)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value JSON can hold")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    /// Called for an empty document.
    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_u128<E: Error>(self, number: u128) -> Result<Value, E> {
        Number::from_u128(number)
            .map(Value::Number)
            .ok_or_else(|| E::custom(format!("{number} is too large")))
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<Value, E> {
        Number::from_i128(number)
            .map(Value::Number)
            .ok_or_else(|| E::custom(format!("{number} is too large")))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Number::from_f64(number)
            .map(Value::Number)
            .ok_or_else(|| E::custom(format!("{number} is not accepted")))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Tree(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        let mut merged = Vec::new();
        while let Some((Tree(key), Tree(value))) = entries.next_entry()? {
            match key {
                Value::String(key) if key == "<<" => merged.push(value),
                Value::String(key) => drop(values.insert(key, value)),
                other => drop(values.insert(other.to_string(), value)),
            }
        }
        for source in merged {
            merge_key(&mut values, source).map_err(A::Error::custom)?;
        }
        Ok(Value::Object(values))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Value, A::Error> {
        let (tag, _) = data.variant::<String>()?;
        Err(A::Error::custom(format!("the tag !{tag} is not accepted")))
    }
}

/// Applies `<<`: adds the keys of a mapping, or of a list of mappings, that are not present yet.
fn merge_key(values: &mut Map<String, Value>, source: Value) -> Result<(), &'static str> {
    match source {
        Value::Object(more) => more.into_iter().for_each(|(key, value)| {
            values.entry(key).or_insert(value);
        }),
        Value::Array(sources) => {
            return sources
                .into_iter()
                .try_for_each(|source| merge_key(values, source));
        }
        _ => return Err("the value of << is not a mapping"),
    }
    Ok(())
}
