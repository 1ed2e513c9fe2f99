//! A tool's argument schema in the shape that all vendors accept.

use serde_json::{Map, Value, json};

/// The schema with `type: object` and `properties` at its root, which vendors insist on.
///
/// A root that is only a reference is replaced by what it refers to; the dialect (`$schema`) is left out. All else
/// is as the toolbox wrote it: vendors that refuse a keyword say which.
pub(super) fn parameters(schema: &Value) -> Value {
    let empty = Map::new();
    let source = schema.as_object().unwrap_or(&empty);
    let mut target = None;
    if let Some(pointer) = source
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|text| text.strip_prefix('#'))
    {
        target = schema.pointer(pointer).and_then(Value::as_object);
    }
    let mut root = Map::new();
    root.insert("type".to_owned(), json!("object"));
    root.insert("properties".to_owned(), json!({}));
    for (key, value) in target.into_iter().flatten().chain(source) {
        let dropped = key == "$schema" || key == "type" || (key == "$ref" && target.is_some());
        if !dropped {
            root.insert(key.clone(), value.clone());
        }
    }
    Value::Object(root)
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
                json!({"type": "object", "properties": {"a": {}}, "title": "T"}),
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
