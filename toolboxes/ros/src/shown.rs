//! A message as a model reads it: arrays and texts are cut, bytes are counted, and what was left out is said.

use ovos_toolbox_sdk::prelude::*;

/// An answer has at most so many bytes of JSON.
pub(crate) const LARGEST: usize = 16_000;

/// How much is shown of each array and each text.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    elements: usize,
    letters: usize,
}

/// From the most to the least that is shown; the first one with which an answer is small enough is taken.
pub(crate) const CUTS: [Cut; 5] = [
    Cut::new(32, 4000),
    Cut::new(16, 1000),
    Cut::new(8, 300),
    Cut::new(3, 100),
    Cut::new(1, 40),
];

impl Cut {
    const fn new(elements: usize, letters: usize) -> Self {
        Self { elements, letters }
    }

    /// The value, cut. An array says how long it is, and of numbers the least and the greatest.
    pub(crate) fn apply(self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(name, value)| (name.clone(), self.apply(value)))
                    .collect(),
            ),
            Value::Array(items) if items.len() > self.elements => {
                let first: Vec<Value> = items
                    .iter()
                    .take(self.elements.min(8))
                    .map(|item| self.apply(item))
                    .collect();
                let mut shown = json!({"length": items.len(), "first": first});
                let numbers: Vec<f64> = items.iter().filter_map(Value::as_f64).collect();
                if let (Some(least), Some(most)) = (
                    numbers.iter().copied().reduce(f64::min),
                    numbers.iter().copied().reduce(f64::max),
                ) {
                    shown["least"] = json!(least);
                    shown["most"] = json!(most);
                }
                shown
            }
            Value::Array(items) => Value::Array(items.iter().map(|item| self.apply(item)).collect()),
            Value::String(text) => match bytes_of(text) {
                Some(bytes) => json!({"bytes": bytes}),
                None => Value::from(self.text(text)),
            },
            other => other.clone(),
        }
    }

    /// The text, cut.
    pub(crate) fn text(self, text: &str) -> String {
        let letters = text.chars().count();
        if letters <= self.letters {
            return text.to_owned();
        }
        let first: String = text.chars().take(self.letters).collect();
        format!("{first}… ({letters} characters)")
    }
}

/// How many bytes a long text of base64 has, as which byte arrays are read; `None` where it is another text.
fn bytes_of(text: &str) -> Option<usize> {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let is_long = text.len() > 200 && text.len().is_multiple_of(4);
    (is_long && text.as_bytes().iter().all(is_base64)).then(|| {
        let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
        text.len() / 4 * 3 - padding
    })
}

/// The first of `made` with a cut that is small enough, or the last one.
pub(crate) fn fitting(made: impl Fn(Cut) -> Value) -> Value {
    let mut answer = Value::Null;
    for cut in CUTS {
        answer = made(cut);
        if fits(&answer) {
            break;
        }
    }
    answer
}

/// Whether an answer is small enough.
pub(crate) fn fits(answer: &Value) -> bool {
    answer.to_string().len() <= LARGEST
}

/// The fields of a message that are wanted, by their whole names: `pose.pose.position`, `ranges.0`; the message where none
/// are named.
///
/// # Errors
/// The message has no such field; the error says which it has there.
pub(crate) fn chosen(message: &Value, fields: &[String]) -> Result<Value, ToolError> {
    if fields.is_empty() {
        return Ok(message.clone());
    }
    let mut shown = Object::new();
    for field in fields {
        let mut value = message;
        for word in field.split('.') {
            let inner = match value {
                Value::Array(items) => word.parse().ok().and_then(|index: usize| items.get(index)),
                other => other.get(word),
            };
            value = inner.ok_or_else(|| {
                ToolError::bad_args(format!("the message has no field {field}: {}", has(value)))
            })?;
        }
        shown.insert(field.clone(), value.clone());
    }
    Ok(Value::Object(shown))
}

fn has(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let names: Vec<&str> = fields.keys().map(String::as_str).take(40).collect();
            format!("expected one of {}", names.join(", "))
        }
        Value::Array(items) => format!("expected a number below {}", items.len()),
        _ => "there is nothing inside it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_cut_and_said() {
        let cut = CUTS[0];
        let numbers: Vec<u32> = (0..360).collect();
        let bytes = "AAAA".repeat(100);
        for (given, expected) in [
            (json!({"a": [1, 2]}), json!({"a": [1, 2]})),
            (
                json!(numbers),
                json!({"length": 360, "first": [0, 1, 2, 3, 4, 5, 6, 7], "least": 0.0, "most": 359.0}),
            ),
            (json!(bytes), json!({"bytes": 300})),
            (json!("AAAA".repeat(50)), json!("AAAA".repeat(50))),
            (json!("NaN"), json!("NaN")),
        ] {
            assert_eq!(cut.apply(&given), expected);
        }
        let text = "a b".repeat(5000);
        assert!(cut.apply(&json!(text)).to_string().len() < 4100);
    }

    #[test]
    fn fields_are_chosen_by_their_whole_names() {
        let message = json!({"pose": {"x": 1.0}, "ranges": [5, 6]});
        for (fields, expected) in [
            (&["pose.x"][..], Ok(json!({"pose.x": 1.0}))),
            (
                &["ranges.1", "pose"],
                Ok(json!({"ranges.1": 6, "pose": {"x": 1.0}})),
            ),
            (&["speed"], Err("expected one of pose, ranges")),
            (&["ranges.2"], Err("expected a number below 2")),
            (&["pose.x.y"], Err("there is nothing inside it")),
        ] {
            let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
            match (chosen(&message, &fields), expected) {
                (Ok(shown), Ok(expected)) => assert_eq!(shown, expected),
                (Err(error), Err(expected)) => assert!(error.message().contains(expected), "{error}"),
                (shown, _) => panic!("{fields:?}: {shown:?}"),
            }
        }
    }
}
