//! Converts the schemas that a server lists to schemas that the service accepts. Pure. Read [`accepted`].
//!
//! The service leaves out a tool with a schema that it refuses. The server checks arguments itself, so the refused parts of a
//! schema are dropped here, and the tool stays.

use std::collections::BTreeMap;

use schema::{ArgumentSchema, OutputSchema, SchemaError};
use serde_json::{Map, Value, json};

/// How many parts of a schema may be dropped. A schema with more refused parts is replaced by one without restrictions.
const MAX_DROPPED: usize = 64;

/// Keywords whose values are not schemas.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// Keywords whose values are objects of schemas by name.
const MAPS: [&str; 5] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];

/// Keywords that the service does not support, or not at every place.
const REFERENCES: [&str; 3] = ["$dynamicRef", "$recursiveRef", "$ref"];

/// Returns a schema of arguments that the service accepts, and whether it has fewer restrictions than the server's.
pub(crate) fn arguments(schema: &Value) -> (Value, bool) {
    accepted(schema, |schema| ArgumentSchema::compile(schema).err())
}

/// Returns the same for a schema of results.
pub(crate) fn output(schema: &Value) -> (Value, bool) {
    accepted(schema, |schema| OutputSchema::compile(schema).err())
}

fn accepted(schema: &Value, refused: impl Fn(&Value) -> Option<SchemaError>) -> (Value, bool) {
    if refused(schema).is_none() {
        return (schema.clone(), false);
    }
    let mut schema = with_pointers(schema.clone());
    for dropped in 0..MAX_DROPPED {
        match refused(&schema) {
            None => return (schema, dropped > 0),
            Some(SchemaError::Default { path, .. } | SchemaError::Invalid { path, .. }) => {
                if drop_part(&mut schema, path.trim_start_matches('#')).is_none() {
                    break;
                }
            }
            Some(_) => break,
        }
    }
    (json!({"type": "object", "additionalProperties": true}), true)
}

/// Drops the refused part at a place. Returns `None` if there is nothing to drop.
fn drop_part(schema: &mut Value, at: &str) -> Option<()> {
    if let Some(map) = schema.pointer_mut(at).and_then(Value::as_object_mut) {
        let here = REFERENCES.into_iter().find(|key| map.contains_key(*key));
        if let Some(key) = here.or((at.is_empty() && map.contains_key("$schema")).then_some("$schema")) {
            map.shift_remove(key);
            say_less(map);
            say_less(schema.as_object_mut()?);
            return Some(());
        }
    }
    let (parent, key) = at.rsplit_once('/')?;
    if parent.ends_with("/patternProperties") {
        // The name of the pattern is refused.
        return drop_part(schema, parent);
    }
    let key = key.replace("~1", "/").replace("~0", "~");
    let of_map = parent.rsplit('/').next().is_some_and(|last| MAPS.contains(&last));
    match schema.pointer_mut(parent)? {
        Value::Object(map) if of_map => {
            let part = map.get_mut(&key).filter(|part| **part != json!({}))?;
            *part = json!({});
        }
        Value::Object(map) => {
            let part = map.shift_remove(&key)?;
            if part.is_object() || part.is_array() {
                say_less(map);
                say_less(schema.as_object_mut()?);
            }
        }
        // The part is an element of a list of schemas or words. Without it the list has another meaning, so the whole list is
        // dropped.
        _ => return drop_part(schema, parent),
    }
    Some(())
}

/// Allows an object to have the properties that a dropped part may have declared.
fn say_less(map: &mut Map<String, Value>) {
    map.shift_remove("unevaluatedProperties");
    map.insert("additionalProperties".to_owned(), json!(true));
}

/// Returns the schema with JSON pointers instead of anchors and inner `$id`s.
fn with_pointers(mut schema: Value) -> Value {
    let (mut documents, mut anchors) = (BTreeMap::new(), BTreeMap::new());
    each_schema(&mut schema, "", "", &mut |map, at, within| {
        let text = |key: &str| map.get(key).and_then(Value::as_str);
        let id = text("$id").unwrap_or_default();
        // Drafts before 2019-09 write anchors in `$id`.
        for name in text("$anchor").into_iter().chain(id.strip_prefix('#')) {
            anchors.insert((within.to_owned(), name.to_owned()), at.to_owned());
        }
        if within == at && !id.is_empty() {
            documents.insert(id.trim_end_matches('#').to_owned(), at.to_owned());
        }
    });
    each_schema(&mut schema, "", "", &mut |map, at, within| {
        if !at.is_empty() && map.get("$id").is_some_and(Value::is_string) {
            map.shift_remove("$id");
        }
        let Some(Value::String(reference)) = map.get_mut("$ref") else {
            return;
        };
        let (document, part) = reference.split_once('#').unwrap_or((reference, ""));
        let document = match document {
            "" => Some(within),
            id => documents.get(id).map(String::as_str),
        };
        let Some(document) = document else { return };
        let pointer = match part {
            "" => Some(document.to_owned()),
            part if part.starts_with('/') => Some(format!("{document}{part}")),
            name => anchors.get(&(document.to_owned(), name.to_owned())).cloned(),
        };
        if let Some(pointer) = pointer {
            *reference = format!("#{pointer}");
        }
    });
    schema
}

/// Visits every schema with its place and the place of the innermost `$id` around it.
fn each_schema(
    schema: &mut Value,
    at: &str,
    within: &str,
    visit: &mut impl FnMut(&mut Map<String, Value>, &str, &str),
) {
    match schema {
        Value::Object(map) => {
            let id = map.get("$id").and_then(Value::as_str);
            let within = if id.is_some_and(|id| !id.starts_with('#')) {
                at
            } else {
                within
            };
            visit(map, at, within);
            for (key, value) in map.iter_mut().filter(|(key, _)| !DATA.contains(&key.as_str())) {
                let at = below(at, key);
                match value {
                    Value::Object(named) if MAPS.contains(&key.as_str()) => {
                        for (name, value) in named {
                            each_schema(value, &below(&at, name), within, visit);
                        }
                    }
                    value => each_schema(value, &at, within, visit),
                }
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter_mut().enumerate() {
                each_schema(item, &below(at, &place.to_string()), within, visit);
            }
        }
        _ => {}
    }
}

fn below(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics and prints")]

    use schema::Unknown;

    use super::*;

    #[test]
    fn what_the_service_refuses_of_a_schema_is_dropped() {
        let text = json!({"type": "string"});
        // The columns: the schema of one argument `a`, the schema that is offered, and a value that the server has to receive.
        for (written, offered, value) in [
            (
                json!({"type": "integer", "default": null}),
                json!({"type": "integer"}),
                json!(3),
            ),
            (
                json!({"type": "string", "enum": ["x"], "default": ""}),
                json!({"type": "string", "enum": ["x"]}),
                json!("x"),
            ),
            (
                json!({"type": "string", "pattern": "^(?=.{1,253}$)[a-z.]+$", "minLength": 1}),
                json!({"type": "string", "minLength": 1}),
                json!("a.b"),
            ),
            (
                json!({"type": "array", "items": {"type": "string", "pattern": "(?!x)"}}),
                json!({"type": "array", "items": text}),
                json!(["y"]),
            ),
            (
                json!({"type": "string", "required": true}),
                text.clone(),
                json!("y"),
            ),
            (json!({"type": "any"}), json!({}), json!({"b": 1})),
            (json!("string"), json!({}), json!("y")),
            (
                json!({"type": "number", "minimum": 0, "exclusiveMinimum": true}),
                json!({"type": "number", "minimum": 0}),
                json!(1.5),
            ),
            (
                json!({"$ref": "#/$defs/gone", "description": "b"}),
                json!({"description": "b", "additionalProperties": true}),
                json!({"b": 1}),
            ),
            (
                json!({"$ref": "https://example.org/gone", "properties": {"c": text}}),
                json!({"properties": {"c": text}, "additionalProperties": true}),
                json!({"b": 1}),
            ),
            (
                json!({"$dynamicRef": "#node"}),
                json!({"additionalProperties": true}),
                json!([1]),
            ),
            (
                json!({"type": "object", "patternProperties": {"^(?!x)": text}, "additionalProperties": false}),
                json!({"type": "object", "additionalProperties": true}),
                json!({"b": "c"}),
            ),
            // These schemas lose nothing.
            (
                json!({"$id": "https://example.org/a", "type": "string"}),
                text.clone(),
                json!("y"),
            ),
            (
                json!({"$ref": "#place"}),
                json!({"$ref": "#/$defs/place"}),
                json!("y"),
            ),
            (
                json!({"$ref": "https://example.org/own"}),
                json!({"$ref": "#/$defs/own"}),
                json!({"b": ["y"]}),
            ),
        ] {
            let tool = |argument: &Value| {
                let own = json!({
                    "type": "object", "properties": {"b": {"$ref": "#/$defs/list"}},
                    "$defs": {"list": {"type": "array", "items": {"type": "string"}}},
                });
                let mut own_with_id = own.clone();
                own_with_id["$id"] = json!("https://example.org/own");
                let mut place = text.clone();
                place["$anchor"] = json!("place");
                json!({"type": "object", "properties": {"a": argument, "b": {}}, "$defs": {"place": place, "own": own_with_id}})
            };
            let (got, _) = arguments(&tool(&written));
            assert_eq!(got["properties"]["a"], offered, "{written}");
            let args = json!({"a": value});
            let prepared = ArgumentSchema::compile(&got)
                .unwrap()
                .prepare(args.as_object().unwrap(), Unknown::Refuse);
            assert_eq!(prepared.map(Value::Object), Ok(args), "{written}");
        }
    }

    #[test]
    fn a_schema_that_cannot_be_mended_takes_everything() {
        let mut written = json!({"type": "object", "properties": {}});
        for name in 0..MAX_DROPPED + 1 {
            written["properties"][format!("p{name}")] = json!({"type": "integer", "default": null});
        }
        let takes_all = json!({"type": "object", "additionalProperties": true});
        assert_eq!(arguments(&written), (takes_all, true));
        let good = json!({"type": "object", "properties": {"a": {"default": 1}}});
        assert_eq!(arguments(&good), (good.clone(), false));
        let result = json!({"type": "object", "properties": {"a": {"pattern": "(?=x)"}}});
        assert_eq!(
            output(&result),
            (json!({"type": "object", "properties": {"a": {}}}), true)
        );
    }
}
