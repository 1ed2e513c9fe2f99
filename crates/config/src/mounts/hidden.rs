//! Removes values that may be secret from settings. Everything that is shown or logged goes through these functions.

use serde_json::{Value, json};
use url::Url;

use crate::origin::Setting;

/// The text that replaces a secret.
const HIDDEN: &str = "(not shown)";

/// The length below which the value of a variable does not count as a secret: short texts occur everywhere.
const SHORTEST: usize = 4;

/// Returns a setting without the parts that may be secret.
pub(super) fn without_secrets(mut setting: Setting) -> Setting {
    let key = setting.key.rsplit('.').next().unwrap_or_default();
    match (&mut setting.value, key) {
        (Value::Object(values), "env" | "headers") => {
            for value in values.values_mut() {
                *value = json!(HIDDEN);
            }
        }
        (Value::String(text), "url") => {
            // A text that is not a URL before its variables are filled in may have a secret at any place.
            *text = Url::parse(text).map_or_else(|_| HIDDEN.to_owned(), |url| without_secret_parts(&url));
        }
        // The value may be a token that was written instead of the name of its variable.
        (Value::String(text), "bearer_env") if text.bytes().any(|b| b.is_ascii_lowercase()) => {
            *text = HIDDEN.to_owned();
        }
        _ => {}
    }
    setting
}

/// Returns a URL without the parts that may be secret.
fn without_secret_parts(url: &Url) -> String {
    let mut url = url.clone();
    // Both calls fail only for URLs without a host, which no mount has.
    _ = url.set_password(None);
    _ = url.set_username("");
    url.set_query(None);
    url.set_fragment(None);
    let text = url.to_string();
    let segments = opaque_segments(&text);
    segments
        .iter()
        .fold(text, |text, segment| text.replace(segment, HIDDEN))
}

/// Returns the parts of a URL's path that may be secret because they do not look like words: those of 32 or more characters, and
/// those of 16 or more characters with a digit. Each is returned as it is written and as it is sent.
#[must_use]
pub fn opaque_segments(url: &str) -> Vec<String> {
    let sent = Url::parse(url).map(String::from).unwrap_or_default();
    let mut found = Vec::new();
    for url in [url, &sent] {
        let place = url.split(['?', '#']).next().unwrap_or_default();
        let place = place.split_once("://").map_or("", |(_, place)| place);
        // The first part is the host.
        for segment in place.split('/').skip(1) {
            let digit = segment.bytes().any(|b| b.is_ascii_digit());
            let opaque = segment.len() >= if digit { 16 } else { 32 };
            if opaque && !found.iter().any(|known| known == segment) {
                found.push(segment.to_owned());
            }
        }
    }
    found
}

/// Returns a setting without these secrets in its texts.
pub(super) fn without(mut setting: Setting, secrets: &[String]) -> Setting {
    let hide = |value: &mut Value| {
        if let Value::String(text) = value {
            let secrets = secrets.iter().filter(|secret| secret.len() >= SHORTEST);
            *text = secrets.fold(std::mem::take(text), |text, secret| {
                text.replace(secret.as_str(), HIDDEN)
            });
        }
    };
    match &mut setting.value {
        Value::Array(items) => items.iter_mut().for_each(hide),
        value => hide(value),
    }
    setting
}
