//! Shortens results that are too long for a model, and leaves out what no model can read. Pure.

use ovos_toolbox_wire::Object;
use serde_json::{Value, json};

use crate::ListedTool;

/// The length in bytes from which a text of base64's characters is taken for binary data: no word is that long.
const MIN_BASE64: usize = 512;

/// How many bytes of a text and how many items of a list are left by each attempt to shorten a result. The first attempt that
/// fits counts.
const ATTEMPTS: [(usize, usize); 8] = [
    (4096, 256),
    (2048, 96),
    (1024, 48),
    (512, 24),
    (256, 12),
    (128, 6),
    (64, 3),
    (32, 1),
];

/// Words in the names of arguments with which a caller asks for less.
const NARROWING: [&str; 14] = [
    "limit", "max", "count", "first", "page", "field", "filter", "query", "search", "detail", "depth",
    "inline", "since", "categor",
];

/// A result in a form for a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortened {
    /// The result, without what is left out.
    pub value: Value,
    /// A sentence that says what was done to the result, and how to ask for less.
    pub remark: String,
}

/// Shortens a result to at most `budget` bytes of JSON, as far as that is possible, and leaves binary data out of it. `None` if it
/// can stay as it is.
#[must_use]
pub fn shorten(tool: &ListedTool, value: &Value, budget: usize) -> Option<Shortened> {
    let mut data = 0;
    let readable = without_data(value, &mut data);
    let whole = readable.to_string().len();
    if whole <= budget {
        let remark = format!("{data} bytes of binary data are left out of this result.");
        return (data > 0).then(|| Shortened {
            value: readable,
            remark,
        });
    }
    let attempts = ATTEMPTS.iter().map(|limits| cut(&readable, *limits));
    let fits = |value: &Value| value.to_string().len() <= budget;
    let value = attempts.into_iter().find(fits);
    let value = value.unwrap_or_else(|| json!({"left_out": format!("{whole} bytes")}));
    let length = value.to_string().len();
    Some(Shortened {
        value,
        remark: format!(
            "This result is shortened to {length} of {whole} bytes; long lists and texts are cut. {}",
            advice(&tool.arguments)
        ),
    })
}

/// How a model can ask for less.
fn advice(schema: &Object) -> String {
    let properties = schema.get("properties").and_then(Value::as_object);
    let names: Vec<String> = properties
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
        .filter(|name| NARROWING.iter().any(|word| name.to_lowercase().contains(word)))
        .map(|name| format!("`{name}`"))
        .collect();
    if names.is_empty() {
        "Ask for less by narrower arguments, if the tool has any.".to_owned()
    } else {
        format!("Ask for less by {}.", names.join(", "))
    }
}

/// Replaces binary data, written as base64, by its size. Counts the bytes.
fn without_data(value: &Value, bytes: &mut usize) -> Value {
    match value {
        Value::String(text) if is_data(text) => {
            *bytes += text.len();
            json!(format!("(binary data, {} bytes as text, left out)", text.len()))
        }
        Value::Array(items) => items.iter().map(|item| without_data(item, bytes)).collect(),
        Value::Object(entries) => entries
            .iter()
            .map(|(key, value)| (key.clone(), without_data(value, bytes)))
            .collect::<Object>()
            .into(),
        other => other.clone(),
    }
}

fn is_data(text: &str) -> bool {
    if text.len() < MIN_BASE64 {
        return false;
    }
    let body = match text
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"))
    {
        Some((_, body)) => body,
        None => text,
    };
    let is_code = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    let mut seen = [false; 256];
    let is_base64 = body.bytes().all(|byte| {
        seen[usize::from(byte)] = true;
        is_code(byte) || matches!(byte, b'\n' | b'\r')
    });
    // A text of few different characters is no data but a pattern, such as a line of dashes.
    is_base64 && seen.iter().filter(|seen| **seen).count() > 8
}

/// Cuts texts and lists to these lengths.
fn cut(value: &Value, limits: (usize, usize)) -> Value {
    let (text_limit, list_limit) = limits;
    match value {
        Value::String(text) if text.len() > text_limit => {
            let end = text.floor_char_boundary(text_limit);
            json!(format!("{}...", &text[..end]))
        }
        Value::Array(items) => items
            .iter()
            .take(list_limit)
            .map(|item| cut(item, limits))
            .collect(),
        // An object with many keys serves as a list and is cut like one. In an object with few keys, each of them matters.
        Value::Object(entries) => entries
            .iter()
            .take(list_limit.max(24))
            .map(|(key, value)| (key.clone(), cut(value, limits)))
            .collect::<Object>()
            .into(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use ovos_toolbox_wire::Effect;

    use super::*;

    fn tool(schema: Value) -> ListedTool {
        ListedTool::example("eye", "look", Effect::Read, schema)
    }

    #[test]
    fn results_fit_the_budget_and_say_how_to_ask_for_less() {
        let element = json!({"name": "x264enc", "description": "d".repeat(300), "properties": vec![json!({"a": 1}); 90]});
        let mut keys = Object::new();
        for number in 0..4000 {
            keys.insert(format!("key_{number}"), json!("v".repeat(40)));
        }
        let mut deep = json!("x".repeat(900));
        for _ in 0..40 {
            deep = json!([deep, deep.clone().to_string().len()]);
        }
        for (value, schema) in [
            (
                json!({"elements": vec![element; 500]}),
                json!({"properties": {"limit": {}, "name": {}}}),
            ),
            (
                json!({"text": "ä".repeat(100_000)}),
                json!({"properties": {"max_bytes": {}}}),
            ),
            (Value::Object(keys), json!({})),
            (json!(vec!["x"; 100_000]), json!({})),
            (deep, json!({})),
        ] {
            for budget in [16 << 10, 2 << 10, 600] {
                let short = shorten(&tool(schema.clone()), &value, budget);
                match short {
                    Some(short) => {
                        assert!(short.value.to_string().len() <= budget.max(64), "{budget}");
                        assert!(short.remark.contains("Ask for less by"), "{}", short.remark);
                    }
                    None => assert!(value.to_string().len() <= budget),
                }
            }
        }
        let short = shorten(
            &tool(json!({"properties": {"limit": {}, "name": {}}})),
            &json!(vec!["x"; 9999]),
            999,
        );
        let remark = short.expect("it is long").remark;
        assert!(remark.ends_with("Ask for less by `limit`."), "{remark}");
    }

    #[test]
    fn binary_data_is_left_out_and_nothing_else() {
        let picture: String = (0..3000)
            .map(|n| char::from(b"ABCDefgh0123+/xyz"[n % 17]))
            .collect();
        for (text, is_left_out) in [
            (picture.clone(), true),
            (format!("data:image/png;base64,{picture}"), true),
            (picture[..400].to_owned(), false),
            ("a sentence with words. ".repeat(50), false),
            ("=".repeat(600), false),
            (json!({"a": "b"}).to_string().repeat(60), false),
        ] {
            let value = json!({"data": text, "width": 640});
            let short = shorten(&tool(json!({})), &value, 1 << 20);
            assert_eq!(short.is_some(), is_left_out, "{}", &text[..40]);
            if let Some(short) = short {
                assert_eq!(short.value["width"], 640);
                assert!(short.value.to_string().len() < 200 && short.remark.contains("binary data"));
            }
        }
    }
}
