//! Refuses schemas with endless or too deep recursion, before anything is compiled.
//!
//! A schema comes from a plugin, and a plugin must not be able to take the service down. Recursion through the value
//! (such as a tree of nodes) is accepted, because each level needs a level of the value; recursion in place is refused.
//! References are JSON pointers into the document (`#/$defs/Name`), which is what pydantic and schemars write. Anchors,
//! dynamic references and inner `$id`s are refused, because this crate and the validator might resolve them
//! differently.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::compile::resolve;
use super::problem::SchemaError;
use super::shorten::shorten;

/// The largest depth of nested schemas, references included: each level uses stack when a schema is compiled.
const MAX_NESTED: usize = 200;

/// The longest chain of schemas that describe the same value: each of them uses stack at every level of a value.
const MAX_IN_PLACE: usize = 16;

/// Keywords whose schemas describe the same value.
const IN_PLACE: &[&str] = &["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords whose schemas describe a part of the value.
const INNER: &[&str] = &[
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
/// Keywords that map names to schemas of a part of the value, or to schemas for use by reference.
const INNER_MAPS: &[&str] = &["properties", "patternProperties", "$defs", "definitions"];

pub(super) fn check(schema: &Value) -> Result<(), SchemaError> {
    let mut walk = Walk {
        root: schema,
        seen: HashMap::new(),
    };
    walk.schema(schema, "#", 0)?;
    let mut chains = HashMap::new();
    for &key in walk.seen.keys() {
        walk.chain(key, &mut chains, 0)?;
    }
    Ok(())
}

struct Walk<'s> {
    root: &'s Value,
    /// Every object schema, by its address.
    seen: HashMap<*const Value, VisitedSchema>,
}

#[derive(Default)]
struct VisitedSchema {
    path: String,
    /// The schemas that describe the same value.
    in_place: Vec<*const Value>,
}

impl<'s> Walk<'s> {
    fn schema(&mut self, schema: &'s Value, path: &str, depth: usize) -> Result<(), SchemaError> {
        let key = std::ptr::from_ref(schema);
        let Value::Object(map) = schema else { return Ok(()) };
        if self.seen.contains_key(&key) {
            return Ok(());
        }
        if depth > MAX_NESTED {
            return Err(invalid(
                path,
                format!("expected at most {MAX_NESTED} schemas inside one another"),
            ));
        }
        self.seen.insert(
            key,
            VisitedSchema {
                path: path.to_owned(),
                in_place: Vec::new(),
            },
        );
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            if map.contains_key(keyword) {
                let message =
                    format!("`{keyword}` is not supported, expected `$ref` with \"#/$defs/<name>\"");
                return Err(invalid(path, message));
            }
        }
        if depth > 0 && map.get("$id").is_some_and(Value::is_string) {
            return Err(invalid(
                path,
                "an inner `$id` is not supported, expected one document".to_owned(),
            ));
        }
        let mut in_place = children(map, IN_PLACE, &["dependentSchemas"], path);
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            let Some(target) = resolve(self.root, reference) else {
                let text = super::shorten(&map["$ref"]);
                let message = format!(
                    "the reference {text} cannot be resolved, expected \"#/$defs/<name>\" of this schema"
                );
                return Err(invalid(path, message));
            };
            in_place.push((target, reference.to_owned()));
        }
        for (child, path) in in_place.iter().chain(&children(map, INNER, INNER_MAPS, path)) {
            self.schema(child, path, depth + 1)?;
        }
        if let Some(place) = self.seen.get_mut(&key) {
            place.in_place = in_place
                .iter()
                .map(|(child, _)| std::ptr::from_ref(*child))
                .collect();
        }
        Ok(())
    }

    /// The length of the longest in-place chain from a schema. A loop is refused like a chain that is too long.
    fn chain(
        &self,
        key: *const Value,
        chains: &mut HashMap<*const Value, usize>,
        depth: usize,
    ) -> Result<usize, SchemaError> {
        if let Some(&known) = chains.get(&key) {
            return Ok(known);
        }
        // A boolean schema has no entry, because it refers to nothing.
        let Some(place) = self.seen.get(&key) else {
            return Ok(0);
        };
        let mut longest = 0;
        if depth <= MAX_IN_PLACE {
            for &child in &place.in_place {
                longest = longest.max(1 + self.chain(child, chains, depth + 1)?);
            }
        }
        if depth > MAX_IN_PLACE || longest > MAX_IN_PLACE {
            return Err(invalid(
                &place.path,
                format!(
                    "`$ref` refers to itself without descending into the value, or through more than {MAX_IN_PLACE} references \
                     and alternatives"
                ),
            ));
        }
        chains.insert(key, longest);
        Ok(longest)
    }
}

fn invalid(path: &str, message: String) -> SchemaError {
    SchemaError::Invalid {
        path: path.to_owned(),
        message,
    }
}

/// The schemas under `keywords` (one schema or a list of them) and under `maps` (a map of schemas), with their paths.
fn children<'s>(
    map: &'s Map<String, Value>,
    keywords: &'static [&'static str],
    maps: &'static [&'static str],
    path: &str,
) -> Vec<(&'s Value, String)> {
    let mut found = Vec::new();
    for &keyword in keywords {
        match map.get(keyword) {
            Some(Value::Array(list)) => {
                found.extend(
                    list.iter()
                        .enumerate()
                        .map(|(i, child)| (child, format!("{path}/{keyword}/{i}"))),
                );
            }
            Some(child) => found.push((child, format!("{path}/{keyword}"))),
            None => {}
        }
    }
    for &keyword in maps {
        if let Some(Value::Object(inner)) = map.get(keyword) {
            found.extend(
                inner
                    .iter()
                    .map(|(name, child)| (child, format!("{path}/{keyword}/{name}"))),
            );
        }
    }
    found
}

/// Checks a schema that is only shown and not used for validation: it has to describe an object, and its recursion has
/// to end.
///
/// # Errors
///
/// [`SchemaError`] otherwise.
pub fn check_shown(schema: &Value) -> Result<(), SchemaError> {
    if !schema.is_object() {
        return Err(SchemaError::NotAnObject {
            found: shorten(schema),
        });
    }
    if let Some(kind) = schema.get("type").filter(|_| !allows_objects(schema)) {
        return Err(SchemaError::NotForArguments { found: shorten(kind) });
    }
    check(schema)
}

/// Whether the root of a schema allows objects: its type is `object`, or is not stated (`$ref`, `allOf`).
#[must_use]
pub fn allows_objects(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        // The meta-schema refuses an invalid `type`, with a better text.
        _ => true,
    }
}
