//! Parses YAML into JSON values. Applies `<<` and refuses tags.

use serde_json::{Map, Value};

/// Parses one document.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut value: Value = serde_norway::from_str(text).map_err(|error| {
        // serde calls a value with a tag an enum.
        let message = error.to_string();
        message.replace(
            "invalid type: enum, expected any valid JSON value",
            "YAML tags (!...) are not supported",
        )
    })?;
    apply_merge_keys(&mut value)?;
    Ok(value)
}

/// Applies `<<` in every mapping.
fn apply_merge_keys(value: &mut Value) -> Result<(), String> {
    match value {
        Value::Array(items) => items.iter_mut().try_for_each(apply_merge_keys),
        Value::Object(values) => {
            values.values_mut().try_for_each(apply_merge_keys)?;
            values
                .shift_remove("<<")
                .map_or(Ok(()), |source| add(values, source))
        }
        _ => Ok(()),
    }
}

/// Adds those keys of a mapping, or of a list of mappings, that are not present yet.
fn add(values: &mut Map<String, Value>, source: Value) -> Result<(), String> {
    match source {
        Value::Object(more) => {
            for (key, value) in more {
                values.entry(key).or_insert(value);
            }
            Ok(())
        }
        Value::Array(sources) => sources.into_iter().try_for_each(|source| add(values, source)),
        _ => Err("the value of a merge key (<<) must be a mapping".to_owned()),
    }
}
