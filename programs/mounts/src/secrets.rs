//! Hides the texts of a mount that must not be shown. Read [`Secrets::hide`], then [`Secrets::hide_in_result`].

use std::path::Path;

use config::MountConfig;
use ovos_toolbox_wire::Failure;
use parking_lot::Mutex;
use serde_json::Value;

/// The text that replaces a secret.
pub(crate) const HIDDEN: &str = "(not shown)";

/// The length below which a text does not count as a secret: short texts occur everywhere.
const SHORTEST: usize = 4;

/// The length below which a part of a value does not count as a secret, because it may be a word such as `https`.
const SHORTEST_PART: usize = 6;

/// The length below which a text in results does not count as a secret, because callers work with results.
const SHORTEST_IN_RESULTS: usize = 8;

/// The most tokens that are remembered.
const MOST_LEARNED: usize = 8;

/// The separators between the parts of a value: `Bearer abc`, `key=abc; other=def`, `user:abc@host`.
const PARTS: [char; 9] = ['\n', ' ', '&', '=', ':', ';', ',', '@', '/'];

/// The texts of a mount that are not shown.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    /// The texts that no log, status or error may contain.
    from_messages: Vec<String>,
    /// The texts that no result may contain. These are whole values only, because a part may be a word that a caller needs.
    from_results: Vec<String>,
    /// Tokens that were got by signing in. Nothing may contain them.
    learned: Mutex<Vec<String>>,
}

impl Secrets {
    /// Collects the values of the mount's headers and variables, its token, the values that were filled in, and the secret parts
    /// of its URL.
    pub(crate) fn of(mount: &MountConfig, token: Option<&str>) -> Self {
        let url = mount.url.as_deref().unwrap_or_default();
        let query = url.split_once('?').map(|(_, query)| query);
        let place = url.split_once("://").map_or("", |(_, place)| place);
        let authority = place.split(['/', '?', '#']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        let pairs = query.into_iter().flat_map(|query| query.split('&'));
        // The names in a query are not secret.
        let of_query = pairs.map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
        let of_user = user.into_iter().flat_map(|user| user.split(':'));
        let of_path = config::opaque_segments(url);
        let of_url: Vec<&str> = query
            .into_iter()
            .chain(of_path.iter().map(String::as_str))
            .chain(user)
            .chain(of_query)
            .chain(of_user)
            .collect();
        let headers = mount.headers.values().map(String::as_str).chain(token);
        let env = mount.env.values().chain(&mount.filled_in).map(String::as_str);
        let values = headers.clone().chain(env.clone());
        // Each part of a value is a secret, too.
        let parts = values.clone().flat_map(|value| value.split(PARTS));
        let parts = parts.filter(|part| part.len() >= SHORTEST_PART);
        let from_messages = of_url.iter().copied().chain(values).chain(parts);
        // A scheme, such as Bearer, is not secret.
        let of_headers = headers.clone().filter_map(|value| Some(value.split_once(' ')?.1));
        // An existing path is not secret either, and a server of files returns its own paths.
        let env = env.filter(|value| !(value.starts_with('/') && Path::new(value).exists()));
        let from_results = of_url.iter().copied().chain(headers).chain(of_headers);
        let from_results = from_results.chain(env.clone()).chain(env.filter_map(password));
        Self {
            from_messages: longest_first(from_messages, SHORTEST),
            from_results: longest_first(from_results, SHORTEST_IN_RESULTS),
            learned: Mutex::default(),
        }
    }

    /// Hides this token from now on, too.
    pub(crate) fn learn(&self, token: &str) {
        let mut learned = self.learned.lock();
        if token.len() >= SHORTEST_IN_RESULTS && !learned.iter().any(|known| known == token) {
            // Those that were renewed do not count any more, but an old answer may still show one.
            if learned.len() == MOST_LEARNED {
                learned.remove(0);
            }
            learned.push(token.to_owned());
        }
    }

    /// These secrets, and the tokens that were learned.
    fn all(&self, secrets: &[String]) -> Vec<String> {
        let learned = self.learned.lock();
        learned.iter().chain(secrets).cloned().collect()
    }

    /// Returns a text for people, without the secrets.
    pub(crate) fn hide(&self, text: &str) -> String {
        hidden(text, &self.all(&self.from_messages))
    }

    /// Splits a text that will be continued into two parts. No secret crosses the split, and none begins in the first part and
    /// ends after the text.
    pub(crate) fn parted<'t>(&self, text: &'t str) -> (&'t str, &'t str) {
        let longest = self.from_messages.first().map_or(0, String::len);
        let mut at = text.len().saturating_sub(longest);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let found = |secret| {
            text.match_indices(secret)
                .map(|(start, found)| start..start + found.len())
        };
        let found: Vec<_> = self
            .from_messages
            .iter()
            .flat_map(|secret| found(secret.as_str()))
            .collect();
        while let Some(across) = found.iter().find(|found| found.start < at && at < found.end) {
            at = across.start;
        }
        text.split_at(at)
    }

    /// Returns a text of a server, without the secrets.
    pub(crate) fn hide_in_text(&self, text: &str) -> String {
        hidden(text, &self.all(&self.from_results))
    }

    /// Returns the result of a server, without the secrets in its texts and keys.
    pub(crate) fn hide_in_result(&self, value: &Value) -> Value {
        hidden_in(value, &self.all(&self.from_results))
    }

    /// Returns a value for people, without the secrets in its texts and keys.
    pub(crate) fn hide_in(&self, value: &Value) -> Value {
        hidden_in(value, &self.all(&self.from_messages))
    }

    /// Returns a failure as callers may see it: without secrets, and cut to a readable length.
    pub(crate) fn failure(&self, failure: Failure) -> Failure {
        let data = failure.data.map(|data| self.hide_in(&data));
        Failure {
            message: cut(&self.hide(&failure.message)),
            data: data.filter(|data| data.to_string().len() <= MAX_DATA),
            ..failure
        }
    }
}

/// Returns the texts, longest first, because one may be a part of another.
fn longest_first<'a>(texts: impl Iterator<Item = &'a str>, shortest: usize) -> Vec<String> {
    let texts = texts.filter(|text| text.len() >= shortest);
    let mut texts: Vec<String> = texts.map(str::to_owned).collect();
    texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    texts.dedup();
    texts
}

/// The password in a URL: `postgres://user:password@host/name`.
fn password(value: &str) -> Option<&str> {
    let (_, place) = value.split_once("://")?;
    let (user, _) = place.split(['/', '?', '#']).next()?.rsplit_once('@')?;
    Some(user.split_once(':').map_or(user, |(_, password)| password))
}

fn hidden(text: &str, secrets: &[String]) -> String {
    let hidden = |text: String, secret: &String| text.replace(secret, HIDDEN);
    secrets.iter().fold(text.to_owned(), hidden)
}

fn hidden_in(value: &Value, secrets: &[String]) -> Value {
    match value {
        Value::String(text) => Value::String(hidden(text, secrets)),
        Value::Array(items) => items.iter().map(|item| hidden_in(item, secrets)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(key, value)| (hidden(key, secrets), hidden_in(value, secrets)))
                .collect()
        }
        other => other.clone(),
    }
}

/// The longest text of a server that is shown as a reason or an error, in characters.
const MAX_TOLD: usize = 2000;

/// The most bytes of data in an error.
const MAX_DATA: usize = 16 << 10;

/// Returns the text, or its beginning if it is too long.
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
        written["filled_in"] = json!(["f-secret"]);
        let mount = serde_json::from_value(written).unwrap();
        let secrets = Secrets::of(&mount, Some("t-secret"));
        for alone in ["q-secret", "pass", "me:pass", "h-secret"] {
            assert_eq!(secrets.hide(alone), "(not shown)");
        }
        let text = "1 error for https://me:pass@host.example/mcp?key=q-secret with h-secret, e-secret, f-secret and t-secret";
        let text = secrets.hide(text);
        assert!(!text.contains("secret") && !text.contains("pass"), "{text}");
        assert!(text.starts_with("1 error for https://"), "{text}");
        assert!(text.contains("host.example/mcp"), "{text}");
    }

    #[test]
    fn a_token_in_the_path_of_a_url_is_hidden() {
        let mut written = serde_json::to_value(MountConfig::default()).unwrap();
        written["url"] = json!("https://host.example/api/mcp/s/abcd1234\u{e9}efgh5678/mcp");
        let secrets = Secrets::of(&serde_json::from_value(written).unwrap(), None);
        for token in ["abcd1234\u{e9}efgh5678", "abcd1234%C3%A9efgh5678"] {
            let text = format!("no route to https://host.example/api/mcp/s/{token}/mcp");
            let shown = "no route to https://host.example/api/mcp/s/(not shown)/mcp";
            assert_eq!(secrets.hide(&text), shown);
            assert_eq!(secrets.hide_in_text(token), HIDDEN);
        }
    }

    #[test]
    fn no_secret_is_cut_in_two() {
        let mut written = serde_json::to_value(MountConfig::default()).unwrap();
        written["env"] =
            json!({"LONG": "abcdefghij", "SHORT": "abcdef", "CERTIFICATE": "-----\nfirst-line\nother-line"});
        let secrets = Secrets::of(&serde_json::from_value(written).unwrap(), None);
        let line = "\u{e4}xabcdefghijx".repeat(20);
        for cut in (0..line.len()).filter(|cut| line.is_char_boundary(*cut)) {
            let (complete, rest) = secrets.parted(&line[..cut]);
            let text = secrets.hide(complete) + &secrets.hide(&format!("{rest}{}", &line[cut..]));
            assert_eq!(text, "\u{e4}x(not shown)x".repeat(20), "{cut}");
        }
        assert_eq!(Secrets::default().parted("all of it"), ("all of it", ""));
        assert_eq!(secrets.hide("other-line"), HIDDEN, "it is logged line by line");
    }

    #[test]
    fn results_keep_what_callers_work_with() {
        let mut written = serde_json::to_value(MountConfig::default()).unwrap();
        written["url"] = json!("https://me:password-u@host.example/mcp?key=q-secret-1");
        written["headers"] = json!({"Authorization": "Bearer h-secret-1", "X-Key": "h-secret-2"});
        written["env"] = json!({
            "TOKEN": "e-secret-1", "ROOT": "/usr/lib", "GONE": "/no/such/place", "DEBUG": "true",
            "DB": "postgres://admin:password-e@localhost/db",
        });
        let mount = serde_json::from_value(written).unwrap();
        let secrets = Secrets::of(&mount, Some("t-secret-1"));
        let hidden = "(not shown)";
        for (returned, shown) in [
            ("e-secret-1", hidden),
            ("/no/such/place", hidden),
            ("password-e", hidden),
            ("password-u", hidden),
            ("q-secret-1", hidden),
            ("Bearer h-secret-1", hidden),
            ("it sent h-secret-1", "it sent (not shown)"),
            ("h-secret-2", hidden),
            ("t-secret-1", hidden),
            (
                "/usr/lib/a is true on localhost of postgres",
                "/usr/lib/a is true on localhost of postgres",
            ),
        ] {
            assert_eq!(secrets.hide_in_text(returned), shown);
            let value = secrets.hide_in_result(&json!({returned: [returned, 1]}));
            assert_eq!(value, json!({shown: [shown, 1]}));
        }
    }

    #[test]
    fn a_failure_is_told_without_secrets_and_in_short() {
        let mut written = serde_json::to_value(MountConfig::default()).unwrap();
        written["env"] = json!({"DB": "postgres://me:e-secret@host/db"});
        let mount = serde_json::from_value(written).unwrap();
        let secrets = Secrets::of(&mount, None);
        let hidden = |message: &str, data: Value| {
            secrets.failure(Failure {
                data: Some(data),
                ..Failure::new("McpError", message)
            })
        };
        let text = hidden("no e-secret", json!({"a": ["e-secret"], "e-secret": 1}));
        assert_eq!(text.message, "no (not shown)");
        assert_eq!(text.data, Some(json!({"a": ["(not shown)"], "(not shown)": 1})));
        let long = hidden(&"\u{e4}".repeat(5000), json!("x".repeat(20_000)));
        assert_eq!((long.message.chars().count(), long.data), (2003, None));
    }
}
