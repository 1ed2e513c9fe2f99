//! Checks the `default`s of a schema when it is compiled.
//!
//! Defaults are filled in while the arguments are coerced (`coerce`), at every level like pydantic does, and are
//! validated with them. One that does not fit would fail every call that relies on it with a text that blames
//! the caller, so it is refused here, where the author of the toolbox reads it.

use serde_json::Value;

use super::SchemaError;
use super::bounds::{Bounds, Words};
use super::compile::resolve;
use super::validate;

pub(super) fn check(schema: &Value, bounds: &Bounds) -> Result<(), SchemaError> {
    if !mentions_default(schema) {
        return Ok(());
    }
    // Compiles every subschema on its own: only worth it when there is a default to check.
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
