//! Settings without what may be secret in them, for everything that is shown or logged.

use serde_json::{Value, json};
use url::Url;

use crate::origin::Setting;

/// What stands in the place of a secret.
const HIDDEN: &str = "(not shown)";

/// Shorter values of variables are no secrets, and would be found everywhere.
const SHORTEST: usize = 4;

/// A setting as it may be shown.
pub(super) fn without_secrets(mut setting: Setting) -> Setting {
    let key = setting.key.rsplit('.').next().unwrap_or_default();
    match (&mut setting.value, key) {
        (Value::Object(values), "env" | "headers") => {
            for value in values.values_mut() {
                *value = json!(HIDDEN);
            }
        }
        (Value::String(text), "url") => {
            // What is no URL before its variables are filled in may have a secret anywhere.
            *text = Url::parse(text).map_or_else(|_| HIDDEN.to_owned(), |url| shown(&url));
        }
        // A token that was written in the place of its variable's name.
        (Value::String(text), "bearer_env") if text.bytes().any(|b| b.is_ascii_lowercase()) => {
            *text = HIDDEN.to_owned();
        }
        _ => {}
    }
    setting
}

/// A URL without what may be secret in it.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail only for URLs without a host, which no mount has.
    _ = url.set_password(None);
    _ = url.set_username("");
    url.set_query(None);
    url.set_fragment(None);
    let shown = url.to_string();
    let segments = opaque_segments(&shown);
    segments
        .iter()
        .fold(shown, |shown, segment| shown.replace(segment, HIDDEN))
}

/// The parts of a URL's path that may be secret, because they are no words: those of 32 characters and more, and those of 16 and
/// more with a digit. As they are written, and as they are sent.
#[must_use]
pub fn opaque_segments(url: &str) -> Vec<String> {
    let sent = Url::parse(url).map(String::from).unwrap_or_default();
    let mut found = Vec::new();
    for url in [url, &sent] {
        let place = url.split(['?', '#']).next().unwrap_or_default();
        let place = place.split_once("://").map_or("", |(_, place)| place);
        // The first is the host.
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

/// A setting without these values in its texts.
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
