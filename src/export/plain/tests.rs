//! Arguments of every shipped tool, and of tools that others wrote, in their plain form.

use super::*;

/// The keywords that may be kept as they are.
const KEPT: [&str; 6] = [
    "description",
    "pattern",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
];

/// The schema of an argument, rewritten.
fn plain_argument(property: &Value) -> Value {
    plain(&json!({"type": "object", "properties": {"x": property}}))["properties"]["x"].clone()
}

#[test]
fn arguments_have_one_plain_form() {
    for (schema, expected) in [
        (
            json!({"type": ["string", "null"], "default": null, "description": "A name."}),
            json!({"type": "string", "description": "A name."}),
        ),
        (
            json!({"anyOf": [{"type": "integer", "minimum": 1, "maximum": 9}, {"type": "null"}], "default": null,
                "description": "How often."}),
            json!({"type": "integer", "minimum": 1, "maximum": 9, "description": "How often."}),
        ),
        (
            json!({"type": ["string", "null"], "enum": ["left", "right", null]}),
            json!({"type": "string", "enum": ["left", "right"]}),
        ),
        (
            json!({"oneOf": [
                {"const": "open", "description": "Open."},
                {"const": "close", "description": "Closes and holds."}]}),
            json!({"type": "string", "enum": ["open", "close"], "description": "close: Closes and holds."}),
        ),
        (
            json!({"anyOf": [{"enum": ["a", "b"]}, {"const": "c"}, {"type": "null"}]}),
            json!({"type": "string", "enum": ["a", "b", "c"]}),
        ),
        (json!({"const": "x"}), json!({"type": "string", "enum": ["x"]})),
        (
            json!({"enum": [1, 2, 5], "description": "A gear"}),
            json!({"type": "integer", "minimum": 1, "maximum": 5, "description": "A gear. One of 1, 2, 5."}),
        ),
        (
            json!({"type": "integer", "format": "uint32", "default": 50.0, "minimum": 0.0}),
            json!({"type": "integer", "minimum": 0, "default": 50}),
        ),
        (
            json!({"type": "number", "default": 2.0, "minimum": 0.5, "maximum": 30.0}),
            json!({"type": "number", "minimum": 0.5, "maximum": 30, "default": 2}),
        ),
        (
            json!({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10}),
            json!({"type": "integer", "minimum": 1, "maximum": 9}),
        ),
        (
            json!({"type": "number", "exclusiveMinimum": 0}),
            json!({"type": "number", "minimum": 0, "description": "It is more than 0."}),
        ),
        (
            json!({"description": "Any value."}),
            json!({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}], "description": "Any value."}),
        ),
        (
            json!(true),
            json!({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}),
        ),
        (
            json!({"type": ["string", "number"], "maximum": 3}),
            json!({"anyOf": [{"type": "string"}, {"type": "number", "maximum": 3}]}),
        ),
        (json!({"default": 2.5}), json!({"type": "number", "default": 2.5})),
        (
            json!({"type": "array"}),
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}}),
        ),
        (
            json!({"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}]}),
            json!({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
        ),
        (
            json!({"type": "object"}),
            json!({"type": "object", "additionalProperties": true}),
        ),
        (
            json!({"type": "object", "properties": {"y": {"type": "string"}}, "required": ["y", "z"],
                "additionalProperties": false}),
            json!({"type": "object", "properties": {"y": {"type": "string"}}, "required": ["y"]}),
        ),
        (
            json!({"anyOf": [{"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "boolean"}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "boolean"}]}),
        ),
    ] {
        assert_eq!(plain_argument(&schema), expected, "{schema}");
    }
}

#[test]
fn the_root_offers_all_arguments_and_says_which_go_together() {
    for (schema, expected) in [
        (json!({}), json!({"type": "object", "properties": {}})),
        (json!(true), json!({"type": "object", "properties": {}})),
        (json!("no schema"), json!({"type": "object", "properties": {}})),
        (
            json!({"anyOf": [
                {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"b": {"type": "string"}}, "required": ["b"]}]}),
            json!({"type": "object", "description": "Needs a, or b.",
                "properties": {"b": {"type": "string"}, "a": {"type": "string"}}}),
        ),
        (
            json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/B"}}},
                "B": {"type": "boolean", "title": "B"}}}),
            json!({"type": "object", "properties": {"a": {"type": "boolean"}}}),
        ),
        (
            json!({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}],
                "properties": {"b": {"type": "integer"}, "never": false}, "required": ["b", "never"],
                "not": {"required": ["c"]}, "if": {}, "additionalProperties": true}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
                "required": ["a", "b"]}),
        ),
    ] {
        assert_eq!(plain(&schema), expected, "{schema}");
    }
}

/// Whether every schema has a type or choices that have one, and nothing that a host refuses.
fn is_plain(schema: &Value, is_root: bool) -> bool {
    let Some(keywords) = schema.as_object() else {
        return *schema == json!(true);
    };
    let keys = [
        "type",
        "description",
        "properties",
        "required",
        "items",
        "enum",
        "anyOf",
        "default",
        "minimum",
        "maximum",
        "additionalProperties",
        "format",
    ];
    let inner = |key: &str| keywords.get(key).is_none_or(|inner| is_plain(inner, false));
    let kind = keywords.get("type").and_then(Value::as_str);
    let has_kind = kind.is_some_and(|kind| kind != "null")
        || (!is_root
            && keywords
                .get("anyOf")
                .and_then(Value::as_array)
                .is_some_and(|choices| choices.len() > 1));
    has_kind
        && keywords
            .keys()
            .all(|key| keys.contains(&key.as_str()) || KEPT.contains(&key.as_str()))
        && keywords
            .get("enum")
            .and_then(Value::as_array)
            .is_none_or(|values| values.iter().all(Value::is_string))
        && (kind != Some("array") || keywords.contains_key("items"))
        && inner("items")
        && inner("additionalProperties")
        && keywords
            .get("properties")
            .and_then(Value::as_object)
            .is_none_or(|properties| properties.values().all(|property| is_plain(property, false)))
        && keywords
            .get("anyOf")
            .and_then(Value::as_array)
            .is_none_or(|choices| choices.iter().all(|choice| is_plain(choice, false)))
}

#[test]
fn every_tool_that_is_shipped_is_plain_and_keeps_its_arguments() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/toolboxes");
    let mut count = 0;
    for file in std::fs::read_dir(folder).expect("the schemas of the toolboxes") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("a text");
        let toolbox: Value = serde_json::from_str(&text).expect("JSON");
        for tool in toolbox["tools"].as_array().expect("tools") {
            let schema = &tool["argument_schema"];
            let plain = plain(schema);
            assert!(is_plain(&plain, true), "{}: {plain}", tool["name"]);
            let names = |schema: &Value| -> Vec<String> {
                let properties = schema.get("properties").and_then(Value::as_object);
                properties
                    .into_iter()
                    .flatten()
                    .map(|(name, _)| name.clone())
                    .collect()
            };
            assert_eq!(names(&plain), names(schema), "{}", tool["name"]);
            let required = |schema: &Value| names_of(schema.get("required"));
            assert_eq!(required(&plain), required(schema), "{}", tool["name"]);
            count += 1;
        }
    }
    assert!(count > 100, "{count} tools");
}

#[test]
fn what_others_write_becomes_plain_and_bounded() {
    let mut deep = json!({"type": "string"});
    for _ in 0..60 {
        deep = json!({"type": "object", "properties": {"x": deep}});
    }
    let mut doubling = json!({"L0": {"type": "string"}});
    for level in 1..30 {
        let inner = json!({"$ref": format!("#/$defs/L{}", level - 1)});
        doubling[format!("L{level}")] =
            json!({"type": "object", "properties": {"a": inner, "b": inner, "c": inner}});
    }
    for schema in [
        json!({"properties": {"x": deep}}),
        json!({"properties": {"x": {"$ref": "#/$defs/L29"}}, "$defs": doubling}),
        json!({"properties": {"x": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}}),
        json!({"properties": {"x": {"$ref": "#"}}}),
        json!({"properties": {"x": {"$ref": "http://elsewhere.test/s.json"}}}),
        json!({"properties": {"x": {"type": "array", "items": {"$ref": "#/properties/x"}}}}),
        json!({"properties": {"x": {"allOf": [{"$ref": "#/properties/x"}]}}}),
        json!({"properties": {"x": {"type": "null"}, "y": {"type": []}, "z": {"type": "file"}, "e": {"enum": []}}}),
        json!({"properties": {"x": {"enum": [null]}, "y": {"anyOf": []}, "z": {"anyOf": [{"type": "null"}]}}}),
        json!({"properties": {"x": {"anyOf": [{"const": 1}, {"const": "a"}, {"type": "object"}]}}}),
        json!({"properties": {"x": {"type": "string", "anyOf": [{"minLength": 1}, {"pattern": "a"}]}}}),
        json!({"properties": {"x": {"items": [{"type": "string"}, {}], "type": "array"}, "y": {"items": false}}}),
        json!({"properties": {"x": {"enum": ["a", 1, true, [1]]}, "y": {"const": {"a": 1}}, "z": {"not": {}}}}),
        json!({"properties": {"x": {"patternProperties": {"^a": {}}, "propertyNames": {}, "minProperties": 1}}}),
        json!({"oneOf": [{"$ref": "#/$defs/A"}, {"type": "null"}], "$defs": {"A": {"properties": {"a": 5}}}}),
        json!({"properties": 5, "required": "x", "anyOf": 7}),
        json!([1, 2]),
    ] {
        let plain = plain(&schema);
        let text = plain.to_string();
        assert!(is_plain(&plain, true), "{schema} became {text}");
        assert!(text.len() < 400_000, "{} bytes of {schema}", text.len());
    }
}
