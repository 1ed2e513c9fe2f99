//! What the facts do not show of a request: the values of secret arguments, and what is very long.
//!
//! An argument is secret if the schema of its tool says `writeOnly`, or the configuration lists its name (`facts_hide`).
//! Read [`Redaction`].

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

use ovos_toolbox_wire::Object;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use section::{HiddenArguments, plain_name};

/// What stands in the place of a secret.
pub(super) const HIDDEN: &str = "(hidden)";

/// The longest value under a key of a request, in bytes of JSON. Of a longer one the facts have hash and size.
const LONGEST: usize = 16 << 10;

/// The shortest secret that is looked for in texts: a shorter one is in any text.
const SHORTEST_SOUGHT: usize = 4;

/// The key of a request that is secret in itself: the token of a confirmation.
const CONFIRM: &str = "confirm";

/// Hides what is secret in a request and in its answer.
#[derive(Debug)]
pub(super) struct Redaction<'a> {
    listed: &'a HiddenArguments,
    /// The secret arguments of the tools that the request names.
    declared: BTreeSet<String>,
    /// The texts that were hidden.
    hidden: Vec<String>,
}

impl<'a> Redaction<'a> {
    pub(super) fn new(listed: &'a HiddenArguments) -> Self {
        Self {
            listed,
            declared: BTreeSet::new(),
            hidden: Vec::new(),
        }
    }

    /// Hides these arguments, too.
    pub(super) fn declare(&mut self, secrets: &BTreeSet<String>) {
        self.declared.extend(secrets.iter().map(|name| plain_name(name)));
    }

    /// The data of a request as the facts show it; the data itself, where nothing is hidden and nothing is long.
    pub(super) fn of_request(&mut self, data: &Arc<Object>) -> Arc<Object> {
        let fits = |value: &Value| Measure::of(value).is_some();
        let open = |(key, value): (&String, &Value)| key != CONFIRM && !self.is_in(value) && fits(value);
        if data.iter().all(open) {
            return data.clone();
        }
        let mut redacted = Object::clone(data);
        for (key, value) in &mut redacted {
            if key == CONFIRM {
                self.hide_whole(value);
            } else {
                self.hide(value);
            }
            if !fits(value) {
                *value = digest(value);
            }
        }
        Arc::new(redacted)
    }

    /// A result as the facts show it; `None` if it is long.
    pub(super) fn of_result(&mut self, result: &Value) -> Option<Value> {
        Measure::of(result)?;
        let mut redacted = result.clone();
        if self.is_in(result) {
            self.hide(&mut redacted);
        }
        self.scrub(&mut redacted);
        Some(redacted)
    }

    /// An error as the facts show it. The text of a refusal quotes arguments, shortened; another one may repeat them.
    pub(super) fn of_error(&self, text: &str, refused: bool) -> String {
        if refused && !self.hidden.is_empty() {
            let kind = text.split_once(':').map_or(text, |(kind, _)| kind);
            let is_kind = kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
            let kind = if is_kind { kind } else { "Error" };
            return format!("{kind}: {HIDDEN}, because arguments of the call are secret");
        }
        self.scrubbed(text).unwrap_or_else(|| text.to_owned())
    }

    fn is_secret(&self, name: &str) -> bool {
        self.listed.names(name) || (!self.declared.is_empty() && self.declared.contains(&plain_name(name)))
    }

    /// Whether there is something to hide in a value.
    fn is_in(&self, value: &Value) -> bool {
        match value {
            Value::Object(entries) => {
                let mut entries = entries.iter();
                entries.any(|(key, value)| (self.is_secret(key) && !value.is_null()) || self.is_in(value))
            }
            Value::Array(items) => items.iter().any(|item| self.is_in(item)),
            Value::String(text) => match within(text) {
                Within::Json(inner) => self.is_in(&inner),
                // It may be meant as arguments.
                Within::Broken => !self.declared.is_empty(),
                Within::Text => false,
            },
            _ => false,
        }
    }

    fn hide(&mut self, value: &mut Value) {
        match value {
            Value::Object(entries) => {
                for (key, value) in entries {
                    if self.is_secret(key) && !value.is_null() {
                        self.hide_whole(value);
                    } else {
                        self.hide(value);
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.hide(item);
                }
            }
            Value::String(text) if self.is_in(&Value::String(text.clone())) => match within(text) {
                Within::Json(mut inner) => {
                    self.hide(&mut inner);
                    *value = inner;
                }
                Within::Broken | Within::Text => self.hide_whole(value),
            },
            _ => {}
        }
    }

    fn hide_whole(&mut self, value: &mut Value) {
        let text = match *value {
            Value::String(ref mut text) => std::mem::take(text),
            ref other => other.to_string(),
        };
        self.hidden.push(text);
        *value = Value::from(HIDDEN);
    }

    /// Hides the secrets in texts.
    fn scrub(&self, value: &mut Value) {
        if self.hidden.is_empty() {
            return;
        }
        match value {
            Value::Object(entries) => entries.values_mut().for_each(|value| self.scrub(value)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.scrub(item)),
            Value::String(text) => {
                if let Some(scrubbed) = self.scrubbed(text) {
                    *text = scrubbed;
                }
            }
            _ => {}
        }
    }

    fn scrubbed(&self, text: &str) -> Option<String> {
        let long = |secret: &&String| secret.len() >= SHORTEST_SOUGHT;
        let mut found = self
            .hidden
            .iter()
            .filter(long)
            .filter(|secret| text.contains(&***secret));
        let first = found.next()?;
        Some(found.fold(text.replace(&**first, HIDDEN), |text, secret| {
            text.replace(&**secret, HIDDEN)
        }))
    }
}

/// What a text holds.
enum Within {
    Text,
    /// An object or a list, or the JSON text of one: clients write arguments in that way.
    Json(Value),
    /// It begins like one and is none.
    Broken,
}

fn within(text: &str) -> Within {
    match text.trim_start().as_bytes().first() {
        Some(b'{' | b'[' | b'"') => match serde_json::from_str(text) {
            Ok(inner) => Within::Json(inner),
            Err(_) => Within::Broken,
        },
        _ => Within::Text,
    }
}

/// Counts the bytes of a value up to [`LONGEST`].
struct Measure(usize);

impl Measure {
    /// The size, unless it is above the limit.
    fn of(value: &Value) -> Option<usize> {
        let mut measure = Self(0);
        serde_json::to_writer(&mut measure, value).ok()?;
        Some(measure.0)
    }
}

impl Write for Measure {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        if self.0 > LONGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Hash and size of a value's JSON.
fn digest(value: &Value) -> Value {
    let text = value.to_string();
    let hash = Sha256::digest(&text);
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "sha256": hash, "bytes": text.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(data: &Value, secrets: &[&str]) -> (Value, usize) {
        let hidden = HiddenArguments::default();
        let mut redaction = Redaction::new(&hidden);
        redaction.declare(&secrets.iter().map(ToString::to_string).collect());
        let data = Arc::new(data.as_object().cloned().unwrap_or_default());
        let redacted = redaction.of_request(&data);
        (Value::from(Object::clone(&redacted)), redaction.hidden.len())
    }

    #[test]
    fn secrets_are_hidden_in_every_form_of_arguments() {
        let hidden = json!({"args": {"key": HIDDEN}});
        for (data, expected) in [
            (json!({"args": {"key": "x7Qz"}}), hidden.clone()),
            (json!({"args": {"KEY": "x7Qz"}}), json!({"args": {"KEY": HIDDEN}})),
            (json!({"args": {"k_ey": 17}}), json!({"args": {"k_ey": HIDDEN}})),
            (json!({"args": {"key": {"deep": "x7Qz"}}}), hidden.clone()),
            (json!({"args": {"key": null}}), json!({"args": {"key": null}})),
            (json!({"args": r#"{"key": "x7Qz"}"#}), hidden.clone()),
            (
                json!({"args": r#""{\"key\": \"x7Qz\"}""#}),
                json!({"args": {"key": HIDDEN}}),
            ),
            (json!({"args": r#"{"key": "x7Q"#}), json!({"args": HIDDEN})),
            (
                json!({"steps": [{"id": "a", "args": {"key": "x7Qz", "arm": "left"}}]}),
                json!({"steps": [{"id": "a", "args": {"key": HIDDEN, "arm": "left"}}]}),
            ),
            (
                json!({"args": {"password": "x7Qz"}}),
                json!({"args": {"password": HIDDEN}}),
            ),
            (
                json!({"confirm": "x7Qz", "args": {}}),
                json!({"confirm": HIDDEN, "args": {}}),
            ),
            (
                json!({"args": {"arm": "[left"}}),
                json!({"args": {"arm": HIDDEN}}),
            ),
            (
                json!({"name": "key", "args": {"arm": "key"}}),
                json!({"name": "key", "args": {"arm": "key"}}),
            ),
        ] {
            let (shown, _) = shown(&data, &["key"]);
            assert_eq!(shown, expected, "{data}");
            assert!(!shown.to_string().contains("x7Qz"), "{shown}");
        }
        // Without a secret argument a broken text is a text.
        assert_eq!(shown(&json!({"args": {"say": "[left"}}), &[]).1, 0);
    }

    #[test]
    fn what_is_longer_than_16_kib_is_hash_and_size() {
        // The quotes of the JSON text count.
        for (letters, whole) in [(LONGEST - 2, true), (LONGEST - 1, false)] {
            let text = "a".repeat(letters);
            let (shown, _) = shown(&json!({"name": "say", "text": text}), &[]);
            assert_eq!(shown["name"], "say");
            assert_eq!(shown["text"] == text.as_str(), whole, "{letters}");
            if !whole {
                assert_eq!(shown["text"]["bytes"], LONGEST + 1);
                let hash = Sha256::digest(format!("\"{text}\""));
                let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(shown["text"]["sha256"], hash);
            }
        }
    }

    #[test]
    fn no_answer_repeats_what_was_hidden() {
        let hidden = HiddenArguments::default();
        let mut redaction = Redaction::new(&hidden);
        redaction.of_request(&Arc::new(
            json!({"args": {"password": "x7Qz"}})
                .as_object()
                .cloned()
                .unwrap(),
        ));
        let result = redaction.of_result(&json!({"said": ["x7Qz!"], "secret": 5, "on": true}));
        assert_eq!(
            result,
            Some(json!({"said": ["(hidden)!"], "secret": HIDDEN, "on": true}))
        );
        assert_eq!(
            redaction.of_error("Failed: x7Qz is wrong", false),
            "Failed: (hidden) is wrong"
        );
        let refused = redaction.of_error("ValueError: 'password' must not be \"x7...\"", true);
        assert_eq!(
            refused,
            "ValueError: (hidden), because arguments of the call are secret"
        );
        assert_eq!(redaction.of_result(&json!("x".repeat(LONGEST))), None);
        let open = Redaction::new(&hidden);
        assert_eq!(open.of_error("ValueError: x", true), "ValueError: x");
    }
}
