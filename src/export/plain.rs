//! Rewrites the schema of a tool's arguments into the part of JSON Schema that every host and vendor takes.
//!
//! Hosts convert a schema into their own form and leave out a tool, or a whole server, that they cannot convert. What they all take:
//! a `type` in each schema, `properties`, `items`, `enum` of texts, bounds that include their limit, and `anyOf` below the root of
//! schemas with different types. The rest is expressed with these, said in the description, or left out: the service checks the
//! arguments with the tool's own schema anyway.

use schema::resolve;
use serde_json::{Map, Value, json};

/// How deep schemas are read. What is deeper, or refers to itself, is any object.
const DEEPEST: usize = 16;

/// How many schemas the result may have: references to references could make it enormous.
const MOST: usize = 2_000;

/// The one keyword beyond JSON Schema that means something to clients.
const MCP_HEADER: &str = "x-mcp-header";

/// The keywords whose subschemas are choices.
const CHOICES: [&str; 2] = ["anyOf", "oneOf"];

struct Rewriting<'a> {
    document: &'a Value,
    left: usize,
}

/// Returns the schema of an object: `type`, `properties`, and `required` where something is.
pub(super) fn plain(document: &Value) -> Value {
    let mut rewriting = Rewriting { document, left: MOST };
    let mut root = rewriting.object(document, 0);
    root.entry("properties").or_insert_with(|| json!({}));
    root.shift_remove("additionalProperties");
    Value::Object(root)
}

impl Rewriting<'_> {
    /// Returns a schema with the target of its reference and its `allOf` put in place.
    fn whole(&self, schema: &Value, depth: usize) -> Map<String, Value> {
        let Some(keywords) = schema.as_object() else {
            return Map::new();
        };
        let mut whole = Map::new();
        if depth >= DEEPEST {
            return whole;
        }
        let target = keywords.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|reference| resolve(self.document, reference));
        let parts = keywords.get("allOf").and_then(Value::as_array);
        for part in target.into_iter().chain(parts.into_iter().flatten()) {
            merge(&mut whole, self.whole(part, depth + 1));
        }
        let own = keywords
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "$ref" | "allOf"));
        merge(
            &mut whole,
            own.map(|(key, value)| (key.clone(), value.clone())).collect(),
        );
        whole
    }

    /// Rewrites the schema of an object. Its choices are offered together, since a model reads one list of arguments.
    fn object(&mut self, schema: &Value, depth: usize) -> Map<String, Value> {
        let mut whole = self.whole(schema, depth);
        let mut needs = Vec::new();
        for keyword in CHOICES {
            let Some(Value::Array(choices)) = whole.shift_remove(keyword) else {
                continue;
            };
            let mut alternatives = Vec::new();
            for choice in &choices {
                let mut choice = self.whole(choice, depth + 1);
                let required = choice.shift_remove("required");
                alternatives.push(names_of(required.as_ref()).join(" and "));
                if let Some(Value::Object(properties)) = choice.shift_remove("properties") {
                    let mut added = Map::new();
                    added.insert("properties".to_owned(), Value::Object(properties));
                    // What the object says of itself comes before what a choice says.
                    merge(&mut added, whole);
                    whole = added;
                }
            }
            alternatives.retain(|names| !names.is_empty());
            alternatives.dedup();
            if alternatives.len() > 1 {
                needs.push(format!("Needs {}.", alternatives.join(", or ")));
            }
        }
        let mut plain = Map::new();
        plain.insert("type".to_owned(), json!("object"));
        describe(&mut plain, whole.get("description"), &needs);
        let mut names = Vec::new();
        if let Some(Value::Object(properties)) = whole.get("properties") {
            let mut offered = Map::new();
            for (name, property) in properties {
                // `false` allows no value.
                if property != &Value::Bool(false) {
                    names.push(name.clone());
                    offered.insert(name.clone(), self.value(property, depth + 1));
                }
            }
            plain.insert("properties".to_owned(), Value::Object(offered));
        }
        let mut required = names_of(whole.get("required"));
        required.retain(|name| names.contains(name));
        if !required.is_empty() {
            plain.insert("required".to_owned(), json!(required));
        }
        // Some hosts drop every argument of an object that has neither `properties` nor `additionalProperties`.
        if names.is_empty() {
            let rest = match whole.get("additionalProperties") {
                Some(Value::Bool(false)) => None,
                Some(rest @ Value::Object(_)) => Some(self.value(rest, depth + 1)),
                _ => Some(json!(true)),
            };
            if let Some(rest) = rest {
                plain.insert("additionalProperties".to_owned(), rest);
            }
        }
        plain
    }

    /// Rewrites the schema of an argument, of an item, or of a choice.
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        let Some(left) = self.left.checked_sub(1).filter(|_| depth < DEEPEST) else {
            return json!({"type": "object", "additionalProperties": true});
        };
        self.left = left;
        let mut whole = self.whole(schema, depth);
        let mut notes = Vec::new();
        let values = values_of(&mut whole, &mut notes);
        let mut choices = Vec::new();
        for keyword in CHOICES {
            if let Some(Value::Array(alternatives)) = whole.shift_remove(keyword) {
                choices.extend(alternatives);
            }
        }
        choices.retain(|choice| !is_null(&Value::Object(self.whole(choice, depth + 1))));
        if let [only] = choices.as_slice() {
            // An optional value: what is beside the choice belongs to it.
            let mut only = self.whole(only, depth + 1);
            merge(&mut only, whole);
            return self.value(&Value::Object(only), depth + 1);
        }
        let kinds = kinds_of(&whole, values.as_deref(), !choices.is_empty());
        let mut plain = match kinds.as_slice() {
            [kind] => self.of_kind(kind, &whole, values.as_deref(), &mut notes, depth),
            _ => {
                let mut offered: Vec<Value> = Vec::new();
                for choice in &choices {
                    flatten(self.value(choice, depth + 1), &mut offered);
                }
                if choices.is_empty() {
                    for kind in &kinds {
                        let of_kind = self.of_kind(kind, &whole, values.as_deref(), &mut Vec::new(), depth);
                        flatten(Value::Object(of_kind), &mut offered);
                    }
                }
                let mut plain = Map::new();
                plain.insert("anyOf".to_owned(), Value::Array(offered));
                plain
            }
        };
        if !choices.is_empty() && kinds.len() == 1 {
            // The choices narrow a type that is known: they are left to the service.
            notes.extend(constants(&choices));
        }
        let description = whole.get("description").cloned();
        plain.shift_remove("description");
        describe(&mut plain, description.as_ref(), &notes);
        // MCP: the client repeats the argument in a header of this name.
        if let Some(header) = whole.get(MCP_HEADER) {
            plain.insert(MCP_HEADER.to_owned(), header.clone());
        }
        if let Some(default) = default(&whole, &plain) {
            plain.insert("default".to_owned(), default);
        }
        Value::Object(plain)
    }

    /// The keywords of a schema that belong to one type.
    fn of_kind(
        &mut self,
        kind: &str,
        whole: &Map<String, Value>,
        values: Option<&[Value]>,
        notes: &mut Vec<String>,
        depth: usize,
    ) -> Map<String, Value> {
        let mut plain = Map::new();
        plain.insert("type".to_owned(), json!(kind));
        match kind {
            "string" => {
                let texts: Vec<&str> = values.into_iter().flatten().filter_map(Value::as_str).collect();
                if !texts.is_empty() {
                    plain.insert("enum".to_owned(), json!(texts));
                }
                for keyword in ["pattern", "minLength", "maxLength"] {
                    keep(&mut plain, whole, keyword);
                }
                if let Some(format) = whole.get("format").filter(|format| *format == "date-time") {
                    plain.insert("format".to_owned(), format.clone());
                }
            }
            "integer" | "number" => {
                bounds(&mut plain, kind, whole, notes);
                if let Some(values) = values {
                    numbers(&mut plain, values, notes);
                }
            }
            "array" => {
                let items = self.items(whole, depth);
                plain.insert("items".to_owned(), items);
                let tuple = whole
                    .get("prefixItems")
                    .or_else(|| whole.get("items"))
                    .and_then(Value::as_array);
                for keyword in ["minItems", "maxItems"] {
                    keep(&mut plain, whole, keyword);
                    if let Some(tuple) = tuple {
                        plain.entry(keyword).or_insert_with(|| json!(tuple.len()));
                    }
                }
            }
            "object" => {
                let mut inner = whole.clone();
                inner.shift_remove("description");
                let inner = self.object(&Value::Object(inner), depth);
                plain.extend(inner);
            }
            _ => {}
        }
        plain
    }

    /// The schema of the items of a list. Those of a tuple are choices.
    fn items(&mut self, whole: &Map<String, Value>, depth: usize) -> Value {
        let tuple = whole.get("prefixItems").or_else(|| whole.get("items"));
        match tuple {
            Some(Value::Array(tuple)) if !tuple.is_empty() => {
                let mut kinds: Vec<Value> = Vec::new();
                for item in tuple {
                    flatten(self.value(item, depth + 1), &mut kinds);
                }
                match kinds.as_slice() {
                    [only] => only.clone(),
                    _ => json!({ "anyOf": kinds }),
                }
            }
            Some(items @ Value::Object(_)) => self.value(items, depth + 1),
            _ => self.value(&json!({}), depth + 1),
        }
    }
}

/// Adds the keywords of a schema to another one. The properties and required names of both count.
fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) if key == "properties" => old.extend(new),
            (Some(Value::Array(old)), Value::Array(new)) if key == "required" => {
                old.extend(new);
            }
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

fn keep(plain: &mut Map<String, Value>, whole: &Map<String, Value>, keyword: &str) {
    if let Some(value) = whole.get(keyword) {
        plain.insert(keyword.to_owned(), value.clone());
    }
}

/// Adds a choice, if there is none like it. The choices of a choice are its own.
fn flatten(choice: Value, into: &mut Vec<Value>) {
    match choice.get("anyOf") {
        Some(Value::Array(inner)) => inner.iter().cloned().for_each(|inner| flatten(inner, into)),
        _ if into.contains(&choice) => {}
        _ => into.push(choice),
    }
}

fn names_of(required: Option<&Value>) -> Vec<String> {
    let names = required.and_then(Value::as_array).into_iter().flatten();
    let mut unique = Vec::new();
    for name in names.filter_map(Value::as_str) {
        if !unique.iter().any(|other| other == name) {
            unique.push(name.to_owned());
        }
    }
    unique
}

/// Whether a schema permits null and nothing else.
fn is_null(schema: &Value) -> bool {
    let is = |value: &Value| value.is_null();
    schema
        .get("type")
        .is_some_and(|kind| kind == "null" || *kind == json!(["null"]))
        || schema.get("const").is_some_and(is)
        || schema
            .get("enum")
            .and_then(Value::as_array)
            .is_some_and(|values| !values.is_empty() && values.iter().all(is))
}

/// Takes the values that a schema permits out of it: of `enum`, `const`, and choices that are all constants, whose descriptions
/// become notes. Null stands for a value that may be left out.
fn values_of(whole: &mut Map<String, Value>, notes: &mut Vec<String>) -> Option<Vec<Value>> {
    let listed = whole.shift_remove("enum");
    let constant = whole.shift_remove("const");
    let mut values = match (listed, constant) {
        (Some(Value::Array(values)), _) => Some(values),
        (_, Some(value)) => Some(vec![value]),
        _ => None,
    };
    for keyword in CHOICES {
        let Some(choices) = whole.get(keyword).and_then(Value::as_array) else {
            continue;
        };
        let of_choice = |choice: &Value| -> Option<Vec<Value>> {
            match (choice.get("const"), choice.get("enum")) {
                (Some(value), _) => Some(vec![value.clone()]),
                (_, Some(Value::Array(values))) => Some(values.clone()),
                _ => is_null(choice).then(|| vec![Value::Null]),
            }
        };
        let all: Option<Vec<Vec<Value>>> = choices.iter().map(of_choice).collect();
        if let Some(all) = all.filter(|all| !all.is_empty()) {
            notes.extend(constants(choices));
            values.get_or_insert_default().extend(all.concat());
            whole.shift_remove(keyword);
        }
    }
    let mut values = values?;
    values.retain(|value| !value.is_null());
    let mut unique: Vec<Value> = Vec::with_capacity(values.len());
    for value in values {
        if !unique.contains(&value) {
            unique.push(value);
        }
    }
    Some(unique)
}

/// What the descriptions of constants say beyond their values.
fn constants(choices: &[Value]) -> Vec<String> {
    let says = |choice: &Value| {
        let value = choice.get("const").or_else(|| choice.get("enum")?.get(0))?;
        let name = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let says = choice.get("description")?.as_str()?.trim().trim_end_matches('.');
        let letters = |text: &str| -> String {
            text.chars()
                .filter(|c| c.is_alphanumeric())
                .flat_map(char::to_lowercase)
                .collect()
        };
        (letters(says) != letters(&name)).then(|| format!("{name}: {says}."))
    };
    choices.iter().filter_map(says).collect()
}

/// The types that a schema permits, at least one unless its choices name them.
fn kinds_of(whole: &Map<String, Value>, values: Option<&[Value]>, has_choices: bool) -> Vec<&'static str> {
    const ALL: [&str; 6] = ["string", "number", "integer", "boolean", "array", "object"];
    let kind_named = |name: &str| ALL.into_iter().find(|kind| *kind == name);
    let mut kinds: Vec<&'static str> = match whole.get("type") {
        Some(Value::String(kind)) => kind_named(kind).into_iter().collect(),
        Some(Value::Array(kinds)) => kinds
            .iter()
            .filter_map(Value::as_str)
            .filter_map(kind_named)
            .collect(),
        _ => Vec::new(),
    };
    kinds.dedup();
    if !kinds.is_empty() {
        return kinds;
    }
    let samples = values.filter(|values| !values.is_empty()).map(<[Value]>::to_vec);
    let samples = samples.or_else(|| {
        let default = whole.get("default").filter(|default| !default.is_null());
        default
            .filter(|_| !has_choices)
            .map(|default| vec![default.clone()])
    });
    if let Some(samples) = samples {
        for sample in &samples {
            let kind = kind_of(sample);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        return kinds;
    }
    if has_choices {
        return kinds;
    }
    for (keyword, kind) in [
        ("properties", "object"),
        ("additionalProperties", "object"),
        ("items", "array"),
        ("prefixItems", "array"),
        ("minItems", "array"),
        ("pattern", "string"),
        ("minLength", "string"),
        ("maxLength", "string"),
        ("format", "string"),
        ("minimum", "number"),
        ("maximum", "number"),
        ("exclusiveMinimum", "number"),
        ("exclusiveMaximum", "number"),
        ("multipleOf", "number"),
    ] {
        if whole.contains_key(keyword) {
            return vec![kind];
        }
    }
    // Any value. Lists and objects would need schemas of their own; a model writes them as text, which the service reads.
    vec!["string", "number", "boolean"]
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Null | Value::String(_) => "string",
    }
}

/// Writes the bounds of a number. One that excludes its limit is moved for integers and said for others.
fn bounds(plain: &mut Map<String, Value>, kind: &str, whole: &Map<String, Value>, notes: &mut Vec<String>) {
    for (inclusive, exclusive, step, words) in [
        ("minimum", "exclusiveMinimum", 1, "more than"),
        ("maximum", "exclusiveMaximum", -1, "less than"),
    ] {
        let is_number = |value: &&Value| value.is_number();
        if let Some(bound) = whole.get(inclusive).filter(is_number) {
            plain.insert(inclusive.to_owned(), exact(bound, kind));
        } else if let Some(bound) = whole.get(exclusive).filter(is_number) {
            match bound.as_i64().and_then(|bound| bound.checked_add(step)) {
                Some(bound) if kind == "integer" => _ = plain.insert(inclusive.to_owned(), json!(bound)),
                _ => {
                    plain.insert(inclusive.to_owned(), bound.clone());
                    notes.push(format!("It is {words} {bound}."));
                }
            }
        }
    }
}

/// Writes which numbers are permitted: vendors know lists of texts only.
fn numbers(plain: &mut Map<String, Value>, values: &[Value], notes: &mut Vec<String>) {
    let numbers: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
    if numbers.len() != values.len() || numbers.is_empty() {
        return;
    }
    let is_least = |value: &&Value| numbers.iter().all(|other| value.as_f64() <= Some(*other));
    let is_most = |value: &&Value| numbers.iter().all(|other| value.as_f64() >= Some(*other));
    for (keyword, bound) in [
        ("minimum", values.iter().find(is_least)),
        ("maximum", values.iter().find(is_most)),
    ] {
        if let Some(bound) = bound {
            plain.insert(keyword.to_owned(), bound.clone());
        }
    }
    let texts: Vec<String> = values.iter().map(Value::to_string).collect();
    notes.push(format!("One of {}.", texts.join(", ")));
}

/// A number in its shortest form: `50` for what was given as `50.0`.
fn exact(value: &Value, kind: &str) -> Value {
    match value.as_f64() {
        // Below 2^53 every whole number is exact.
        Some(number)
            if ["integer", "number"].contains(&kind) && number.fract() == 0.0 && number.abs() < 9.0e15 =>
        {
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
            let whole = number as i64;
            json!(whole)
        }
        _ => value.clone(),
    }
}

/// The default of an argument, unless it is null: an argument that is left out.
fn default(whole: &Map<String, Value>, plain: &Map<String, Value>) -> Option<Value> {
    let default = whole.get("default").filter(|default| !default.is_null())?;
    let kind = plain.get("type").and_then(Value::as_str).unwrap_or_default();
    Some(exact(default, kind))
}

/// Writes a description, with notes after it.
fn describe(plain: &mut Map<String, Value>, description: Option<&Value>, notes: &[String]) {
    let mut text = description
        .and_then(Value::as_str)
        .unwrap_or_default()
        .trim_end()
        .to_owned();
    for note in notes {
        if !text.is_empty() {
            text.push_str(if text.ends_with(['.', '!', '?', ':']) {
                " "
            } else {
                ". "
            });
        }
        text.push_str(note);
    }
    if !text.is_empty() {
        plain.insert("description".to_owned(), json!(text));
    }
}

#[cfg(test)]
mod tests;
