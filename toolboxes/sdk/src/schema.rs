//! JSON Schemas in the form of OVOS's own tools.
//!
//! Owns the settings of schemars and the rewrites that make its schemas look like pydantic's `model_json_schema`: draft
//! 2020-12 without `$schema`, an object at the root, `title`s, `properties` even when there are none, options as `anyOf
//! [.., null]`, no number formats, and string enums as `enum` instead of `oneOf`. Does not validate values.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// The schema of a tool's arguments.
#[must_use]
pub fn argument_schema<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    // Inlined, because models read this schema. A recursive type stays a reference.
    generate::<A>(settings.with(|settings| settings.inline_subschemas = true))
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

/// States in the schema of a tool that moves or changes something that it takes no other arguments: the service refuses
/// them in any case. Objects that say something about it themselves, and those that are put together of parts
/// (`allOf`, flattened enums), stay as they are.
pub(crate) fn close(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    let composed = [
        "$ref",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "patternProperties",
        "unevaluatedProperties",
    ];
    if object.get("properties").is_some_and(Value::is_object) {
        if composed.iter().any(|key| object.contains_key(*key)) {
            return;
        }
        object.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    for (key, part) in object {
        match (key.as_str(), part) {
            ("properties" | "$defs", Value::Object(parts)) => parts.values_mut().for_each(close),
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(parts)) => parts.iter_mut().for_each(close),
            ("items" | "additionalProperties", part) => close(part),
            _ => {}
        }
    }
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
        join_words(object);
        split_null(object);
        if let Some(Value::Object(properties)) = object.get_mut("properties") {
            for (name, property) in properties {
                name_property(name, property);
            }
        }
    }
}

/// Turns a `oneOf` of strings into an `enum`, and appends the variants' docs to the description.
///
/// schemars writes an enum with documented variants as a `oneOf` of `const`s, which takes three times as many tokens
/// and which the strict modes of some vendors reject.
fn join_words(object: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = object.get("oneOf") else {
        return;
    };
    let Some(words) = variants.iter().map(words_of).collect::<Option<Vec<_>>>() else {
        return;
    };
    let described = object
        .get("description")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let meanings: Vec<String> = variants.iter().filter_map(meaning_of).collect();
    let meanings = Some(meanings.join("; ") + ".").filter(|_| !meanings.is_empty());
    object.shift_remove("oneOf");
    object.shift_insert(0, "type".to_string(), json!("string"));
    object.shift_insert(1, "enum".to_string(), Value::Array(words.concat()));
    let parts: Vec<String> = described.into_iter().chain(meanings).collect();
    if !parts.is_empty() {
        object.insert("description".to_string(), json!(parts.join(" ")));
    }
}

/// The strings of a variant; `None` if it is not a plain string.
fn words_of(variant: &Value) -> Option<Vec<Value>> {
    let variant = variant.as_object()?;
    if variant.get("type").and_then(Value::as_str) != Some("string") {
        return None;
    }
    match (variant.get("const"), variant.get("enum")) {
        (Some(word), None) => Some(vec![word.clone()]),
        (None, Some(Value::Array(words))) => Some(words.clone()),
        _ => None,
    }
}

/// `on_failure: When it has failed`; `None` if the doc repeats the name.
fn meaning_of(variant: &Value) -> Option<String> {
    let word = variant.get("const")?.as_str()?;
    let meaning = variant.get("description")?.as_str()?.trim_end_matches('.');
    if meaning.eq_ignore_ascii_case(word) {
        return None;
    }
    Some(format!("{word}: {meaning}"))
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

fn name_property(name: &str, property: &mut Value) {
    // pydantic writes "anything" as an empty object, never as `true`.
    if *property == Value::Bool(true) {
        *property = json!({});
    }
    let Some(property) = property.as_object_mut() else {
        return;
    };
    if property.contains_key("$ref") || property.contains_key("title") {
        return;
    }
    property.insert("title".to_string(), Value::String(title(name)));
}

/// `Step Ms` for `step_ms`.
pub(crate) fn title(name: &str) -> String {
    let mut title = String::with_capacity(name.len());
    let mut start = true;
    for letter in name.chars() {
        let character = if letter == '_' { ' ' } else { letter };
        if start {
            title.extend(character.to_uppercase());
        } else {
            title.extend(character.to_lowercase());
        }
        start = !letter.is_alphabetic();
    }
    title.trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When it is started again.
    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    #[schemars(rename_all = "snake_case")]
    enum Restart {
        /// Never.
        Never,
        /// When it has failed, later each time.
        OnFailure,
        /// The element decides.
        Auto,
        Always,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Arguments {
        /// When to try again.
        restart: Restart,
        plain: Restart,
        other: Option<Restart>,
        several: Vec<Restart>,
        inner: Option<Box<Arguments>>,
    }

    #[test]
    fn a_closed_schema_takes_no_other_arguments_at_any_depth() {
        let point = json!({"type": "object", "properties": {"x": {"type": "number"}}});
        let mut closed_point = point.clone();
        closed_point["additionalProperties"] = json!(false);
        let of = |point: &Value| {
            json!({"type": "object", "properties": {
                "at": point, "path": {"type": "array", "items": point}, "maybe": {"anyOf": [point, {"type": "null"}]},
                "free": {"type": "object"}, "by_name": {"type": "object", "additionalProperties": point},
                "mixed": {"type": "object", "properties": {}, "oneOf": [point.clone(), {"type": "object"}]},
            }})
        };
        let mut schema = of(&point);
        close(&mut schema);
        let mut expected = of(&closed_point);
        expected["additionalProperties"] = json!(false);
        expected["properties"]["mixed"]["oneOf"][0] = point;
        assert_eq!(schema, expected);

        let open = json!({"type": "object", "properties": {}, "additionalProperties": true});
        let mut same = open.clone();
        close(&mut same);
        assert_eq!(same, open);
    }

    #[test]
    fn words_are_an_enum_with_their_meanings_in_the_description() {
        let schema = argument_schema::<Arguments>();
        let words = |description: &str| {
            json!({"type": "string", "enum": ["always", "never", "on_failure", "auto"], "description": format!(
                "{description} on_failure: When it has failed, later each time; auto: The element decides."
            )})
        };
        let plain = words("When it is started again.");
        let of = |name: &str| {
            let mut property = schema["properties"][name].clone();
            property.as_object_mut().unwrap().shift_remove("title");
            property
        };
        assert_eq!(of("restart"), words("When to try again."));
        assert_eq!(of("plain"), plain);
        assert_eq!(of("other"), json!({"anyOf": [plain, {"type": "null"}]}));
        assert_eq!(of("several"), json!({"type": "array", "items": plain}));
        assert_eq!(of("inner")["anyOf"][0]["$ref"], "#", "{schema:#}");
    }
}
