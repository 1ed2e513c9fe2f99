//! The arguments that a schema declares as secret: `writeOnly`, as pydantic and OpenAPI write it.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::compile::resolve;

/// The keyword.
const WRITE_ONLY: &str = "writeOnly";

/// The names of the arguments, at any depth, whose schemas say `writeOnly`. A part of an argument that no name of its own has,
/// such as the items of a list, makes the whole argument secret.
pub(super) fn secrets(schema: &Value) -> BTreeSet<String> {
    let mut walk = Walk {
        root: schema,
        seen: HashSet::new(),
        found: BTreeSet::new(),
    };
    walk.schema(schema, None);
    walk.found
}

struct Walk<'s> {
    root: &'s Value,
    /// Each schema by its address, with the argument that it was reached by.
    seen: HashSet<(*const Value, Option<&'s str>)>,
    found: BTreeSet<String>,
}

impl<'s> Walk<'s> {
    /// Looks at a schema of the argument `name`.
    fn schema(&mut self, schema: &'s Value, name: Option<&'s str>) {
        if !self.seen.insert((std::ptr::from_ref(schema), name)) {
            return;
        }
        match schema {
            Value::Array(schemas) => {
                for schema in schemas {
                    self.schema(schema, name);
                }
            }
            Value::Object(keywords) => {
                if keywords.get(WRITE_ONLY) == Some(&Value::Bool(true))
                    && let Some(name) = name
                {
                    self.found.insert(name.to_owned());
                }
                let reference = keywords.get("$ref").and_then(Value::as_str);
                if let Some(target) = reference.and_then(|reference| resolve(self.root, reference)) {
                    self.schema(target, name);
                }
                for (keyword, inner) in keywords {
                    match (keyword.as_str(), inner) {
                        ("properties", Value::Object(properties)) => {
                            for (name, schema) in properties {
                                self.schema(schema, Some(name.as_str()));
                            }
                        }
                        // Values, and definitions that count only where they are referred to.
                        ("const" | "default" | "enum" | "examples" | "$defs" | "definitions", _) => {}
                        (_, inner) => self.schema(inner, name),
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_schema_declares_as_secret_is_found_wherever_it_stands() {
        let secret = json!({"type": "string", "writeOnly": true});
        for (properties, expected) in [
            (json!({"open": {"type": "string"}}), ""),
            (json!({"pin": secret, "open": {"writeOnly": false}}), "pin"),
            (json!({"pin": {"anyOf": [secret, {"type": "null"}]}}), "pin"),
            (json!({"pins": {"type": "array", "items": secret}}), "pins"),
            (json!({"by_name": {"additionalProperties": secret}}), "by_name"),
            (json!({"login": {"$ref": "#/$defs/Login"}}), "key"),
            (json!({"key": {"allOf": [{"$ref": "#/$defs/Key"}]}}), "key"),
            (json!({"tree": {"$ref": "#/$defs/Tree"}}), "leaf"),
            (json!({"writeOnly": {"type": "boolean"}}), ""),
            (json!({"a": {"default": {"writeOnly": true}}}), ""),
            (json!({"a": {"properties": {"b": secret, "c": secret}}}), "b c"),
        ] {
            let schema = json!({"type": "object", "properties": properties, "$defs": {
                "Key": secret,
                "Login": {"properties": {"user": {}, "key": {"$ref": "#/$defs/Key"}}},
                "Tree": {"properties": {"left": {"$ref": "#/$defs/Tree"}, "leaf": secret}},
            }});
            let found = secrets(&schema).into_iter().collect::<Vec<_>>().join(" ");
            assert_eq!(found, expected, "{properties}");
        }
    }
}
