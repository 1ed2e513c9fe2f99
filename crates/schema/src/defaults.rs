//! Checks the `default`s of a schema when it is compiled.
//!
//! Coercion (`coerce`) fills in defaults at every level, like pydantic, and they are validated with the arguments. A
//! default that does not fit would fail every call that relies on it, with a text that blames the caller. So it is
//! refused here, where the author of the toolbox reads the error.

use serde_json::Value;

use super::bounds::Bounds;
use super::compile::resolve;
use super::problem::SchemaError;
use super::validate::{self, Words};

pub(super) fn check(schema: &Value, bounds: &Bounds) -> Result<(), SchemaError> {
    if !mentions_default(schema) {
        return Ok(());
    }
    // This compiles every subschema on its own, so it is done only for a schema with a default.
    let parts = validate::options()
        .build_map(schema)
        .map_err(|error| validate::schema_error(&error))?;
    for pointer in parts.keys() {
        let Some(fragment) = pointer.strip_prefix('#') else {
            continue;
        };
        let default = resolve(schema, pointer).and_then(|part| part.get("default"));
        let (Some(default), Some(part)) = (default, parts.get(pointer)) else {
            continue;
        };
        if fragment.rsplit('/').nth(1) != Some("properties") {
            continue;
        }
        let refused = |message: String| SchemaError::Default {
            path: format!("{pointer}/default"),
            message,
        };
        if bounds
            .survey(default)
            .map_err(|problem| refused(problem.to_string()))?
            == Words::Brief
        {
            return Err(refused("too large and too deeply nested to check".to_owned()));
        }
        if let Err(error) = part.validate(default) {
            return Err(refused(validate::describe(&error, schema).to_string()));
        }
    }
    Ok(())
}

fn mentions_default(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key("default") || map.values().any(mentions_default),
        Value::Array(items) => items.iter().any(mentions_default),
        _ => false,
    }
}
