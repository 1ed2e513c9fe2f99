//! JSON Schemas in the shape that OVOS's own tools have.
//!
//! Owns the settings of schemars and the few rewrites that make its schemas look like pydantic's `model_json_schema`:
//! draft 2020-12 with no `$schema`, an object at the root, `title`s, `properties` even when there are none, options
//! as `anyOf [.., null]`, no number formats. Never looks at a value.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// The schema of a tool's arguments.
#[must_use]
pub fn argument_schema<A: JsonSchema>() -> Value {
    generate::<A>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema of a tool's result.
#[must_use]
pub fn output_schema<O: JsonSchema>() -> Value {
    generate::<O>(SchemaSettings::draft2020_12().for_serialize())
}

fn generate<S: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings
        .with(|settings| settings.meta_schema = None)
        .with_transform(LikePydantic);
    let mut schema = settings.into_generator().into_root_schema_for::<S>();
    let object = schema.ensure_object();
    if !object.contains_key("$ref") && !object.contains_key("anyOf") && !object.contains_key("oneOf") {
        object.entry("type").or_insert_with(|| json!("object"));
        object.entry("properties").or_insert_with(|| json!({}));
    }
    schema.into()
}

#[derive(Clone)]
struct LikePydantic;

impl Transform for LikePydantic {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else {
            return;
        };
        if object
            .get("format")
            .and_then(Value::as_str)
            .is_some_and(is_number_format)
        {
            object.remove("format");
        }
        if object.get("type").and_then(Value::as_str) == Some("object")
            && !object.contains_key("additionalProperties")
        {
            object.entry("properties").or_insert_with(|| json!({}));
        }
        split_null(object);
        if let Some(Value::Object(properties)) = object.get_mut("properties") {
            for (name, property) in properties {
                name_property(name, property);
            }
        }
    }
}

/// `{"type": ["integer", "null"], "minimum": 0}` becomes `{"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]}`.
fn split_null(object: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = object.get("type") else {
        return;
    };
    let kept: Vec<Value> = types.iter().filter(|kind| *kind != "null").cloned().collect();
    if kept.len() == types.len() || kept.is_empty() {
        return;
    }
    let kept = if kept.len() == 1 {
        kept[0].clone()
    } else {
        Value::Array(kept)
    };
    let mut inner = Map::new();
    inner.insert("type".to_string(), kept);
    let outside = [
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "$defs",
        "type",
    ];
    let keys: Vec<String> = object
        .keys()
        .filter(|key| !outside.contains(&key.as_str()))
        .cloned()
        .collect();
    for key in keys {
        if let Some(value) = object.shift_remove(&key) {
            inner.insert(key, value);
        }
    }
    object.shift_remove("type");
    object.insert("anyOf".to_string(), json!([inner, {"type": "null"}]));
}

fn is_number_format(format: &str) -> bool {
    matches!(
        format,
        "int8"
            | "int16"
            | "int32"
            | "int64"
            | "int128"
            | "int"
            | "uint8"
            | "uint16"
            | "uint32"
            | "uint64"
            | "uint128"
            | "uint"
            | "float"
            | "double"
    )
}

/// `step_ms` is titled `Step Ms`.
fn name_property(name: &str, property: &mut Value) {
    // "Anything" is an empty object there, never `true`.
    if *property == Value::Bool(true) {
        *property = json!({});
    }
    let Some(property) = property.as_object_mut() else {
        return;
    };
    if property.contains_key("$ref") || property.contains_key("title") {
        return;
    }
    let mut title = String::with_capacity(name.len());
    let mut start = true;
    for letter in name.chars() {
        let shown = if letter == '_' { ' ' } else { letter };
        if start {
            title.extend(shown.to_uppercase());
        } else {
            title.extend(shown.to_lowercase());
        }
        start = !letter.is_alphabetic();
    }
    property.insert("title".to_string(), Value::String(title.trim().to_string()));
}
