//! Merges layers as OVOS does: objects key by key, everything else replaced as a whole.

use serde_json::{Map, Value};

/// Merges `over` into `base`; `over` takes precedence.
pub(super) fn merge(base: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => merge(below, above),
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Removes the value at a protected key such as `websocket:host`, at any depth. (ovos-config 3.9.0a1 looks up every
/// part in the outermost object and so protects only keys of one or two parts.)
pub(super) fn remove(values: &mut Map<String, Value>, key: &str) {
    match key.split_once(':') {
        None => {
            values.shift_remove(key);
        }
        Some((first, rest)) => {
            if let Some(Value::Object(inner)) = values.get_mut(first) {
                remove(inner, rest);
            }
        }
    }
}

/// Returns the value at a path of keys.
pub(super) fn lookup<'a>(values: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (last, parents) = path.split_last()?;
    let mut values = values;
    for part in parents {
        values = values.get(*part)?.as_object()?;
    }
    values.get(*last)
}
