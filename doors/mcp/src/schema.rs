//! Rewrites the schemas of arguments so that every client can read them. Pure.

use ovos_toolbox_wire::Object;
use serde_json::{Value, json};

/// Returns a schema without lists of types. Many hosts pass schemas on to models whose dialect has no such lists, and leave out a
/// tool with one.
pub(crate) fn one_type_each(mut schema: Object) -> Object {
    split(&mut schema);
    schema
}

fn split(schema: &mut Object) {
    for (keyword, value) in schema.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(named)) => {
                named
                    .values_mut()
                    .filter_map(Value::as_object_mut)
                    .for_each(split);
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(several)) => {
                several
                    .iter_mut()
                    .filter_map(Value::as_object_mut)
                    .for_each(split);
            }
            ("items" | "additionalProperties" | "not" | "if" | "then" | "else", Value::Object(inner)) => {
                split(inner);
            }
            _ => {}
        }
    }
    let types = schema.get("type").and_then(Value::as_array).cloned();
    match types.as_deref() {
        None => {}
        Some([only]) => {
            schema.insert("type".to_owned(), only.clone());
        }
        // The keywords beside the types apply to each of them, but only to the types for which they have a meaning.
        Some(types) if !schema.contains_key("anyOf") => {
            let each = types.iter().map(|kind| json!({ "type": kind }));
            schema.insert("anyOf".to_owned(), each.collect());
            schema.shift_remove("type");
        }
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_types_become_choices_at_every_depth() {
        for (schema, expected) in [
            (json!({"type": "object"}), json!({"type": "object"})),
            (json!({"type": ["string"]}), json!({"type": "string"})),
            (
                json!({"type": ["string", "number"], "maximum": 3}),
                json!({"maximum": 3, "anyOf": [{"type": "string"}, {"type": "number"}]}),
            ),
            // A property may be named `type`, and data may look like a schema.
            (
                json!({"properties": {"type": {"items": {"type": ["string", "null"]}, "default": {"type": ["a", "b"]}}}}),
                json!({"properties": {"type": {
                    "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "default": {"type": ["a", "b"]}}}}),
            ),
            (
                json!({"type": ["string", "number"], "anyOf": [{"minLength": 1}]}),
                json!({"type": ["string", "number"], "anyOf": [{"minLength": 1}]}),
            ),
        ] {
            let Value::Object(given) = schema else {
                panic!("a schema")
            };
            assert_eq!(Value::Object(one_type_each(given)), expected);
        }
    }
}
