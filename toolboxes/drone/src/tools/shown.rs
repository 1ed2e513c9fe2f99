//! What models see otherwise in the schemas of the arguments: bounds, and no `vehicle` where there is one.
//!
//! The schemas on the bus have no bounds: most numbers beyond them are clamped, and the answer says so. Pure. Read
//! [`for_models`].

use ovos_toolbox_sdk::prelude::*;

use super::arguments::VEHICLE;
use super::entry::Entry;
use crate::guard::Limits;

/// The arguments whose names say what they are, with their units, or whose tool's text does.
const PLAIN: [&str; 18] = [
    "cm",
    "ms",
    "range_m",
    "horizon_s",
    "cruise_mps",
    "lat",
    "lon",
    "north_m",
    "east_m",
    "stop_dist_m",
    "step_cm",
    "step_deg",
    "object",
    "label",
    "reason",
    "level",
    "text",
    "arm",
];

/// The patch of a tool's arguments for [`Tool::for_models`].
pub(crate) fn for_models(entry: &Entry, vehicles: &[&str], limits: &Limits) -> Object {
    let mut patch = Object::new();
    let properties = &entry.argument_schema["properties"];
    for range in entry.row.ranges {
        let Some(text) = properties.get(range.arg).map(|property| &property["description"]) else {
            continue;
        };
        let mut limits = bounds(range.min, range.max);
        // Once is enough.
        let ending = format!(", {} to {}.", limits["minimum"], limits["maximum"]);
        if let Some(short) = text.as_str().and_then(|text| text.strip_suffix(&ending)) {
            limits["description"] = json!(format!("{short}."));
        }
        patch.insert(range.arg.to_owned(), limits);
    }
    let (lowest, highest) = (limits.min_alt_m, limits.max_alt_m);
    let around = bounds(-limits.local_radius_m, limits.local_radius_m);
    // Headings are taken modulo 360.
    let heading = bounds(-360.0, 360.0);
    let more = match entry.row.tool {
        "takeoff" => vec![("alt_m", bounds(1.0, highest.min(30.0)))],
        "set_yaw" => vec![("deg", heading)],
        "goto_gps" => vec![("alt_m", bounds(lowest.max(1.0), highest)), ("yaw_deg", heading)],
        "goto_local" => vec![
            ("north_m", around.clone()),
            ("east_m", around),
            ("down_m", bounds(-highest, -lowest)),
            ("yaw_deg", heading),
        ],
        "follow_path" => {
            let point = json!({
                "lat": {"minimum": -90, "maximum": 90, "description": null},
                "lon": {"minimum": -180, "maximum": 180, "description": null},
                "alt_m": bounds(lowest, highest),
            });
            let waypoints = json!({
                "minItems": 1, "maxItems": limits.max_waypoints, "items": {"properties": point},
            });
            vec![("waypoints", waypoints)]
        }
        // The name of the tool says which way.
        "turn_cw" | "turn_ccw" => vec![("deg", json!({"description": null}))],
        // How a picture is searched, and what counts as seen, is no question for a model.
        "orient_to_object" => vec![("center_band", Value::Null), ("micro_deg", Value::Null)],
        "scan" => vec![("max_steps", Value::Null)],
        "is_visible" => vec![("conf_min", Value::Null)],
        _ => Vec::new(),
    };
    for (arg, more) in more {
        match (patch.get_mut(arg), more) {
            (Some(Value::Object(shown)), Value::Object(more)) => shown.extend(more),
            (_, more) => _ = patch.insert(arg.to_owned(), more),
        }
    }
    for arg in PLAIN.iter().filter(|arg| properties.get(**arg).is_some()) {
        let property = patch.entry(*arg).or_insert_with(|| json!({}));
        property["description"] = Value::Null;
    }
    let vehicle = match vehicles {
        [] | [_] => Value::Null,
        several => {
            json!({"anyOf": null, "default": null, "type": "string", "enum": several, "description": "Which drone."})
        }
    };
    patch.insert(VEHICLE.to_owned(), vehicle);
    patch
}

fn bounds(min: f64, max: f64) -> Value {
    json!({"minimum": number(min), "maximum": number(max)})
}

/// A whole number without a point.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e9 {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
        let whole = value as i64;
        json!(whole)
    } else {
        json!(value)
    }
}

#[cfg(test)]
mod tests {
    use ovos_toolbox_sdk::wire::ToolDefinition;

    use super::*;
    use crate::tools::entries;

    /// The numbers of a schema that have no bounds, by their paths.
    fn unbounded(path: &str, schema: &Value, into: &mut Vec<String>) {
        if let Some(parts) = schema["properties"].as_object() {
            for (name, part) in parts {
                unbounded(&format!("{path}.{name}"), part, into);
            }
        }
        if schema.get("items").is_some() {
            unbounded(&format!("{path}[]"), &schema["items"], into);
        }
        let kinds = [&schema["type"], &schema["anyOf"][0]["type"]];
        let is_number = kinds.iter().any(|kind| *kind == "number" || *kind == "integer");
        if is_number && !(schema["minimum"].is_number() && schema["maximum"].is_number()) {
            into.push(path.to_owned());
        }
    }

    #[test]
    fn every_number_has_bounds_and_the_only_vehicle_no_name() {
        let limits = Limits::default();
        let mut missing = Vec::new();
        let mut numbers = 0;
        for entry in entries() {
            for (vehicles, is_shown) in [(&["one"][..], false), (&["one", "two"], true)] {
                let tool: ToolDefinition = serde_json::from_value(json!({
                    "name": entry.row.tool, "effect": entry.row.effect, "argument_schema": entry.argument_schema,
                    "output_schema": entry.output_schema, "for_models": for_models(entry, vehicles, &limits),
                }))
                .unwrap();
                let arguments = tool.shown_arguments();
                unbounded(entry.row.tool, &arguments, &mut missing);
                numbers += arguments.to_string().matches("\"minimum\"").count();
                let vehicle = &arguments["properties"][VEHICLE];
                assert_eq!(
                    vehicle["enum"].is_array(),
                    is_shown,
                    "{}: {vehicle}",
                    entry.row.tool
                );
                assert_eq!(vehicle.is_null(), !is_shown, "{}: {vehicle}", entry.row.tool);
            }
        }
        assert_eq!(missing, Vec::<String>::new());
        assert!(numbers >= 2 * 26, "{numbers}");
    }
}
