//! Summaries of JSON Schemas: the arguments of a tool in a line, and its fields in a table. Pure.
//!
//! It knows how pydantic and schemars write schemas; anything else is shown as `any`. `--json` shows the schema
//! itself.

use serde_json::Value;

use super::paint::{Cell, Paint, Tone, value};

/// How many references and unions are followed; schemas may refer to themselves.
const MAX_DEPTH: usize = 4;

/// Lists the fields: `a, b, [c]`, first the required ones, then the optional ones in brackets.
pub(super) fn summary(schema: &Value) -> String {
    let (required, optional): (Vec<_>, Vec<_>) = fields(schema).partition(|field| field.required);
    let names: Vec<String> = required
        .iter()
        .map(|field| field.name.to_owned())
        .chain(optional.iter().map(|field| format!("[{}]", field.name)))
        .collect();
    if names.is_empty() {
        "-".to_owned()
    } else {
        names.join(", ")
    }
}

/// The fields as a table, or the type of a schema without fields.
pub(super) fn table(schema: &Value, paint: Paint) -> String {
    let rows: Vec<Vec<Cell>> = fields(schema)
        .map(|field| {
            let needed = match (field.required, field.schema.get("default")) {
                (true, _) => Cell::toned(Tone::Strong, "required"),
                (false, Some(default)) => Cell::from(default.to_string()),
                (false, None) => Cell::from("-"),
            };
            let text = field
                .schema
                .get("description")
                .and_then(Value::as_str)
                .unwrap_or("");
            vec![
                field.name.into(),
                kind(schema, field.schema, 0).into(),
                needed,
                super::paint::first_line(text).into(),
            ]
        })
        .collect();
    if rows.is_empty() {
        let kind = kind(schema, schema, 0);
        return format!(" {}\n", if kind == "object" { "none" } else { &kind });
    }
    paint.table(&["NAME", "TYPE", "DEFAULT", "DESCRIPTION"], rows)
}

struct Field<'a> {
    name: &'a str,
    schema: &'a Value,
    required: bool,
}

fn fields(schema: &Value) -> impl Iterator<Item = Field<'_>> {
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(move |(name, schema)| Field {
        name,
        schema,
        required: required.is_some_and(|names| names.iter().any(|it| it == name.as_str())),
    })
}

/// The type of a schema in words. References are resolved in `root`.
fn kind(root: &Value, schema: &Value, depth: usize) -> String {
    if depth > MAX_DEPTH {
        return "any".to_owned();
    }
    let inner = |schema: &Value| kind(root, schema, depth + 1);
    if let Some(Value::Array(choices)) = schema.get("enum") {
        return choices.iter().map(value).collect::<Vec<_>>().join("|");
    }
    if let Some(constant) = schema.get("const") {
        return value(constant);
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return schema::resolve(root, reference).map_or_else(|| "any".to_owned(), inner);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(choices)) = schema.get(key) {
            return union(choices.iter().map(inner).collect());
        }
    }
    match schema.get("type") {
        Some(Value::Array(names)) => union(
            names
                .iter()
                .map(|name| named(root, schema, name, depth))
                .collect(),
        ),
        Some(name @ Value::String(_)) => named(root, schema, name, depth),
        _ if schema.get("properties").is_some() => "object".to_owned(),
        _ => "any".to_owned(),
    }
}

/// The one of the types of a schema that has this name, in words.
fn named(root: &Value, schema: &Value, name: &Value, depth: usize) -> String {
    match name.as_str() {
        Some("array") => {
            let inner = |items| kind(root, items, depth + 1);
            let items = schema.get("items").map_or_else(|| "any".to_owned(), inner);
            if items.contains(['|', '?']) {
                format!("[{items}]")
            } else {
                format!("{items}[]")
            }
        }
        Some(name @ ("integer" | "number")) => name.to_owned() + &range(schema),
        Some(name) => name.to_owned(),
        None => "any".to_owned(),
    }
}

/// Joins types: `a|b`, and `a?` for a type that may be null.
fn union(names: Vec<String>) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    let mut nullable = false;
    for name in &names {
        // A union within this one may be null, too.
        let kind = name.strip_suffix('?').unwrap_or(name);
        nullable |= kind.len() < name.len() || kind == "null";
        if kind != "null" && !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        return "null".to_owned();
    }
    let text = kinds.join("|");
    if nullable { text + "?" } else { text }
}

/// Describes a range: ` 0..10`, ` >0`.
fn range(schema: &Value) -> String {
    let bound = |key: &str| schema.get(key).filter(|bound| bound.is_number());
    let low = bound("minimum").map(|it| format!(">={it}"));
    let low = low.or_else(|| bound("exclusiveMinimum").map(|it| format!(">{it}")));
    let high = bound("maximum").map(|it| format!("<={it}"));
    let high = high.or_else(|| bound("exclusiveMaximum").map(|it| format!("<{it}")));
    match (bound("minimum"), bound("maximum"), low, high) {
        (Some(low), Some(high), ..) => format!(" {low}..{high}"),
        (_, _, low, high) => [low, high]
            .into_iter()
            .flatten()
            .map(|bound| format!(" {bound}"))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_named_in_few_words() {
        let root = json!({"$defs": {
            "Pose": {"type": "object", "properties": {"x": {"type": "number"}}},
            "Arm": {"type": "string", "enum": ["left", "right"]},
            "Loop": {"anyOf": [{"$ref": "#/$defs/Loop"}, {"type": "null"}]}
        }});
        for (schema, words) in [
            (json!({"type": "integer"}), "integer"),
            (
                json!({"type": "number", "minimum": 0, "maximum": 1.5}),
                "number 0..1.5",
            ),
            (json!({"type": "number", "exclusiveMinimum": 0}), "number >0"),
            (
                json!({"type": "integer", "minimum": 1, "exclusiveMaximum": 9}),
                "integer >=1 <9",
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
                "string?",
            ),
            (json!({"type": ["integer", "null"]}), "integer?"),
            (
                json!({"type": ["integer", "null"], "minimum": 1, "maximum": 65536}),
                "integer 1..65536?",
            ),
            (
                json!({"type": ["array", "null"], "items": {"type": "string"}}),
                "string[]?",
            ),
            (
                json!({"type": ["string", "number"], "minimum": 0}),
                "string|number >=0",
            ),
            (
                json!({"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "integer"}]}),
                "integer|string",
            ),
            (json!({"anyOf": [{"type": "null"}, {"type": "null"}]}), "null"),
            (
                json!({"type": "array", "items": {"$ref": "#/$defs/Pose"}}),
                "object[]",
            ),
            (
                json!({"type": "array", "items": {"$ref": "#/$defs/Arm"}}),
                "[left|right]",
            ),
            (json!({"type": "array"}), "any[]"),
            (json!({"const": 5}), "5"),
            (json!({"$ref": "#/$defs/Nowhere"}), "any"),
            (json!({"$ref": "#/$defs/Loop"}), "any?"),
            (json!(true), "any"),
        ] {
            assert_eq!(kind(&root, &schema, 0), words, "{schema}");
        }
    }

    #[test]
    fn fields_are_listed_with_what_they_need() {
        let schema = json!({"type": "object", "required": ["object"], "properties": {
            "arm": {"enum": ["left", "right"], "default": "left", "description": "Which arm.\nMore."},
            "object": {"type": "string", "description": "What to pick"},
            "speed": {"type": "number"}
        }});
        assert_eq!(summary(&schema), "object, [arm], [speed]");
        let expected = [
            " NAME    TYPE        DEFAULT   DESCRIPTION",
            " arm     left|right  \"left\"    Which arm.",
            " object  string      required  What to pick",
            " speed   number      -",
            "",
        ];
        assert_eq!(table(&schema, Paint::default()), expected.join("\n"));
        for (schema, text) in [
            (json!({"type": "object", "properties": {}}), " none\n"),
            (json!({}), " any\n"),
        ] {
            assert_eq!(table(&schema, Paint::default()), text);
            assert_eq!(summary(&schema), "-");
        }
    }
}
