//! Schemas without titles, which only repeat a name and distract a model.

use serde_json::Value;

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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_title_is_left_out_at_every_depth_unless_it_is_a_name_or_data() {
        let schema = json!({"title": "T", "required": ["title"], "properties": {
            "title": {"title": "Title", "type": "string", "default": "title"},
            "list": {"title": "List", "type": "array", "items": {"title": "Item", "anyOf": [{"title": "One"}]},
                "default": [{"title": "kept"}]}},
            "$defs": {"title": {"title": "Name", "not": {"title": "No"}}}});
        let expected = json!({"required": ["title"], "properties": {
            "title": {"type": "string", "default": "title"},
            "list": {"type": "array", "items": {"anyOf": [{}]}, "default": [{"title": "kept"}]}},
            "$defs": {"title": {"not": {}}}});
        assert_eq!(untitled(&schema), expected);
    }
}
