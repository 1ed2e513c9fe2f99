//! What must not be shown of a mount. Pure. Read [`Secrets::hide`].

use config::MountConfig;
use ovos_toolbox_wire::Failure;
use serde_json::Value;

/// Shorter texts are no secrets, and would be found everywhere.
const SHORTEST: usize = 4;

/// The same for a part of a value, which may be a word such as `https`.
const SHORTEST_PART: usize = 6;

/// What stands between the parts of a value: `Bearer abc`, `key=abc; other=def`, `user:abc@host`.
const PARTS: [char; 8] = [' ', '&', '=', ':', ';', ',', '@', '/'];

/// The texts of a mount that stand in no log, no status and no error.
#[derive(Debug, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// The values of its headers and variables, its token, and what its URL has beside a place.
    pub(crate) fn of(mount: &MountConfig, token: Option<&str>) -> Self {
        let url = mount.url.as_deref().unwrap_or_default();
        let query = url.split_once('?').map(|(_, query)| query);
        let place = url.split_once("://").map_or("", |(_, place)| place);
        let authority = place.split(['/', '?', '#']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        let values = mount.headers.values().chain(mount.env.values());
        let values = values.map(String::as_str).chain(token);
        // Each part alone is a secret, too. The names in a query are none.
        let pairs = query.into_iter().flat_map(|query| query.split('&'));
        let of_query = pairs.map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
        let of_user = user.into_iter().flat_map(|user| user.split(':'));
        let parts = values.clone().flat_map(|value| value.split(PARTS));
        let parts = parts.filter(|part| part.len() >= SHORTEST_PART);
        let mut texts: Vec<String> = [query, user]
            .into_iter()
            .flatten()
            .chain(of_query)
            .chain(of_user)
            .chain(values)
            .chain(parts)
            .map(str::to_owned)
            .collect();
        texts.retain(|text| text.len() >= SHORTEST);
        // The longest first: one may be a part of another.
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        texts.dedup();
        Self(texts)
    }

    /// The text without them.
    pub(crate) fn hide(&self, text: &str) -> String {
        let hidden = |text: String, secret: &String| text.replace(secret, "(not shown)");
        self.0.iter().fold(text.to_owned(), hidden)
    }

    /// The value with none of them in its texts and keys.
    pub(crate) fn hide_in(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.hide(text)),
            Value::Array(items) => items.iter().map(|item| self.hide_in(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter();
                fields
                    .map(|(key, value)| (self.hide(key), self.hide_in(value)))
                    .collect()
            }
            other => other.clone(),
        }
    }

    /// A failure as callers may see it: without secrets, and no longer than a person reads.
    pub(crate) fn failure(&self, failure: Failure) -> Failure {
        let data = failure.data.map(|data| self.hide_in(&data));
        Failure {
            message: cut(&self.hide(&failure.message)),
            data: data.filter(|data| data.to_string().len() <= MAX_DATA),
            ..failure
        }
    }
}

/// The longest text of a server that is told as a reason or an error, in characters.
const MAX_TOLD: usize = 2000;

/// The most bytes of data beside an error.
const MAX_DATA: usize = 16 << 10;

/// The text, or its beginning.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TOLD) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics and prints")]

    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_secret_is_left_of_a_text() {
        let mut written = serde_json::to_value(MountConfig::default()).unwrap();
        written["url"] = json!("https://me:pass@host.example/mcp?key=q-secret");
        written["headers"] = json!({"Authorization": "Bearer h-secret"});
        written["env"] = json!({"TOKEN": "e-secret", "DEBUG": "1"});
        let mount = serde_json::from_value(written).unwrap();
        let secrets = Secrets::of(&mount, Some("t-secret"));
        for alone in ["q-secret", "pass", "me:pass", "h-secret"] {
            assert_eq!(secrets.hide(alone), "(not shown)");
        }
        let told =
            "1 error for https://me:pass@host.example/mcp?key=q-secret with h-secret, e-secret and t-secret";
        let shown = secrets.hide(told);
        assert!(!shown.contains("secret") && !shown.contains("pass"), "{shown}");
        assert!(shown.starts_with("1 error for https://"), "{shown}");
        assert!(shown.contains("host.example/mcp"), "{shown}");
    }

    #[test]
    fn a_failure_is_told_without_secrets_and_in_short() {
        let mut written = serde_json::to_value(MountConfig::default()).unwrap();
        written["env"] = json!({"DB": "postgres://me:e-secret@host/db"});
        let mount = serde_json::from_value(written).unwrap();
        let secrets = Secrets::of(&mount, None);
        let told = |message: &str, data: Value| {
            secrets.failure(Failure {
                data: Some(data),
                ..Failure::new("McpError", message)
            })
        };
        let shown = told("no e-secret", json!({"a": ["e-secret"], "e-secret": 1}));
        assert_eq!(shown.message, "no (not shown)");
        assert_eq!(shown.data, Some(json!({"a": ["(not shown)"], "(not shown)": 1})));
        let long = told(&"\u{e4}".repeat(5000), json!("x".repeat(20_000)));
        assert_eq!((long.message.chars().count(), long.data), (2003, None));
    }
}
