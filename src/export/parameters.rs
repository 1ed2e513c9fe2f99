//! Converts a tool's argument schema to the form that all vendors accept.

use schema::resolve;
use serde_json::{Map, Value, json};

/// Returns the schema with `type: object` and `properties` at its root, which vendors require.
///
/// A root that is only a reference is replaced by its target. The dialect (`$schema`) is removed, and so are titles,
/// which only repeat a name and distract a model. Everything else is kept as the toolbox wrote it: vendors that
/// refuse a keyword name it.
pub(super) fn parameters(schema: &Value) -> Value {
    let empty = Map::new();
    let source = schema.as_object().unwrap_or(&empty);
    let reference = source.get("$ref").and_then(Value::as_str);
    let target = reference.and_then(|reference| resolve(schema, reference)?.as_object());
    let mut root = Map::new();
    root.insert("type".to_owned(), json!("object"));
    root.insert("properties".to_owned(), json!({}));
    for (key, value) in target.into_iter().flatten().chain(source) {
        let dropped = key == "$schema" || key == "type" || (key == "$ref" && target.is_some());
        if !dropped {
            root.insert(key.clone(), value.clone());
        }
    }
    let mut root = Value::Object(root);
    drop_titles(&mut root);
    root
}

/// Returns the schema without titles.
pub(super) fn untitled(schema: &Value) -> Value {
    let mut schema = schema.clone();
    drop_titles(&mut schema);
    schema
}

/// Removes the keyword `title` from a schema and its subschemas. A property named `title` is kept, and so is `title` in data: in a
/// default, an example or a constant.
fn drop_titles(schema: &mut Value) {
    let Value::Object(keywords) = schema else { return };
    keywords.shift_remove("title");
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(named),
            ) => named.values_mut().for_each(drop_titles),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(several)) => {
                several.iter_mut().for_each(drop_titles);
            }
            (
                "items"
                | "additionalProperties"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "contains"
                | "propertyNames"
                | "not"
                | "if"
                | "then"
                | "else",
                inner,
            ) => drop_titles(inner),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_objects() {
        for (schema, expected) in [
            (json!({}), json!({"type": "object", "properties": {}})),
            (json!(true), json!({"type": "object", "properties": {}})),
            (
                json!({"$schema": "x", "title": "T", "type": ["object", "null"], "properties": {"a": {}}}),
                json!({"type": "object", "properties": {"a": {}}}),
            ),
            // The keyword is removed at every depth. A property or definition named `title`, and `title` in data, are kept.
            (
                json!({"title": "T", "required": ["title"], "properties": {
                    "title": {"title": "Title", "type": "string", "default": "title"},
                    "list": {"title": "List", "type": "array", "items": {"title": "Item", "anyOf": [{"title": "One"}]},
                        "default": [{"title": "kept"}]}},
                    "$defs": {"title": {"title": "Name", "not": {"title": "No"}}}}),
                json!({"type": "object", "required": ["title"], "properties": {
                    "title": {"type": "string", "default": "title"},
                    "list": {"type": "array", "items": {"anyOf": [{}]}, "default": [{"title": "kept"}]}},
                    "$defs": {"title": {"not": {}}}}),
            ),
            (
                json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": {}}}}}),
                json!({"type": "object", "properties": {"a": {}},
                    "$defs": {"A": {"type": "object", "properties": {"a": {}}}}}),
            ),
        ] {
            assert_eq!(parameters(&schema), expected, "{schema}");
        }
    }
}
