//! The whole of a call's arguments, as clients and models write it. Read [`read_arguments`].

use ovos_toolbox_wire::Object;
use serde_json::Value;

/// Arguments that are not an object, in any of the forms that are read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentsError {
    /// A value of another type.
    #[error("expected a JSON object; found {found}")]
    NotAnObject {
        /// The value, shortened.
        found: String,
    },
    /// A text that is no JSON.
    #[error("expected a JSON object; the text is not JSON: {reason}")]
    NotJson {
        /// What the parser says, and where.
        reason: String,
    },
}

/// Reads the arguments of a call: an object, or the JSON text of one. What models and hosts write for a tool without
/// arguments counts as none: nothing, `null`, an empty text, an empty list, and the JSON text of those.
///
/// # Errors
/// [`ArgumentsError`] for everything else: a text that is cut off or holds something else is never a call without
/// arguments.
///
/// ```
/// use ovos_tools_client::read_arguments;
/// use serde_json::json;
///
/// assert_eq!(read_arguments(Some(&json!(r#"{"arm": "left"}"#))).unwrap()["arm"], "left");
/// assert!(read_arguments(Some(&json!(""))).unwrap().is_empty());
/// assert!(read_arguments(Some(&json!(r#"{"arm": "le"#))).is_err());
/// ```
pub fn read_arguments(value: Option<&Value>) -> Result<Object, ArgumentsError> {
    let parse = |text: &str| {
        serde_json::from_str(text).map_err(|error| ArgumentsError::NotJson {
            reason: error.to_string(),
        })
    };
    let is_written = |text: &str| !text.trim().is_empty();
    let mut parsed = value.cloned().unwrap_or_default();
    // Twice: some write the text of an object as JSON once more.
    for _ in 0..2 {
        if let Value::String(text) = &parsed
            && is_written(text)
        {
            parsed = parse(text)?;
        }
    }
    match parsed {
        Value::Object(arguments) => Ok(arguments),
        Value::Null => Ok(Object::new()),
        Value::Array(items) if items.is_empty() => Ok(Object::new()),
        Value::String(text) if !is_written(&text) => Ok(Object::new()),
        _ => Err(ArgumentsError::NotAnObject {
            found: match value {
                Some(Value::String(text)) => format!("the text {}", shortened(text)),
                other => other.map_or_else(String::new, |other| shortened(&other.to_string())),
            },
        }),
    }
}

/// The beginning of a text: models write long ones.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 80;
    let end = text.floor_char_boundary(LONGEST);
    if end < text.len() {
        format!("{}...", &text[..end])
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_of_the_whole_is_read_or_named() {
        assert_eq!(read_arguments(None), Ok(Object::new()));
        for (value, expected) in [
            (json!({"a": 1}), Ok(r#"{"a":1}"#)),
            (json!(r#" {"a": [1, "{}"]} "#), Ok(r#"{"a":[1,"{}"]}"#)),
            (json!({}), Ok("{}")),
            (json!(null), Ok("{}")),
            (json!(""), Ok("{}")),
            (json!(" \n"), Ok("{}")),
            (json!([]), Ok("{}")),
            (json!("{}"), Ok("{}")),
            (json!("null"), Ok("{}")),
            (json!("[]"), Ok("{}")),
            (json!(r#""""#), Ok("{}")),
            (json!(r#""{\"a\": 1}""#), Ok(r#"{"a":1}"#)),
            (
                json!([{"a": 1}]),
                Err(r#"expected a JSON object; found [{"a":1}]"#),
            ),
            (json!(5), Err("expected a JSON object; found 5")),
            (json!(false), Err("expected a JSON object; found false")),
            (json!("5"), Err("expected a JSON object; found the text 5")),
            (json!("[1]"), Err("expected a JSON object; found the text [1]")),
            (
                json!("a=1"),
                Err("expected a JSON object; the text is not JSON: "),
            ),
            (json!(r#"{"a": 1"#), Err("the text is not JSON: EOF")),
            (
                json!(r#"{"a": 1} {"b": 2}"#),
                Err("the text is not JSON: trailing characters"),
            ),
        ] {
            let read = read_arguments(Some(&value));
            match (read, expected) {
                (Ok(read), Ok(text)) => assert_eq!(Value::Object(read).to_string(), text, "{value}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{value}: {error}"),
                (read, expected) => panic!("{value}: {read:?}, expected {expected:?}"),
            }
        }
        let long = read_arguments(Some(&json!("é".repeat(10_000)))).unwrap_err();
        assert!(long.to_string().len() < 200, "{long}");
    }
}
