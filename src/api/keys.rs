//! Reading the keys of requests.
//!
//! The published contract is lax (a name may be of any type, arguments are checked late), so requests are read key by
//! key instead of being refused as a whole.

use ovos_toolbox_wire::{Effect, FailureKind, Object};
use serde_json::Value;

use super::error::WireError;
use client::payload::{CallOptions, ContentMode};
use schema::shorten;

/// Reads the optional keys of a call. The error names a key of the wrong type or range and what is accepted.
pub(super) fn call_options(data: &Object) -> Result<CallOptions, WireError> {
    Ok(CallOptions {
        call_id: call_id(data)?,
        timeout_ms: timeout_ms(data)?,
        progress: flag(data, "progress")?,
        detail: flag(data, "detail")?,
        confirm: token(data, "confirm")?,
        decline: token(data, "decline")?,
        content: content_mode(data)?,
    })
}

/// The steps of a run that are objects, whatever else is wrong with them.
pub(super) fn steps_of(data: &Object) -> impl Iterator<Item = &Object> {
    let steps = data.get("steps").and_then(Value::as_array);
    steps.into_iter().flatten().filter_map(Value::as_object)
}

fn content_mode(data: &Object) -> Result<Option<ContentMode>, WireError> {
    match text(data, "content")?.as_deref() {
        None => Ok(None),
        Some("path") => Ok(Some(ContentMode::Path)),
        Some("inline") => Ok(Some(ContentMode::Inline)),
        Some(other) => Err(wrong("content", "\"path\" or \"inline\"", &Value::from(other))),
    }
}

/// Reads an optional string.
pub(super) fn text(data: &Object, key: &str) -> Result<Option<String>, WireError> {
    match data.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(wrong(key, "a string", other)),
    }
}

/// Reads a required string.
pub(super) fn required_text(data: &Object, key: &str) -> Result<String, WireError> {
    match text(data, key)? {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(WireError::new(
            FailureKind::ValueError,
            format!("Missing required field: '{key}'"),
        )),
    }
}

/// Reads an optional effect.
pub(super) fn effect(data: &Object) -> Result<Option<Effect>, WireError> {
    let Some(word) = text(data, "effect")? else {
        return Ok(None);
    };
    let effect = Effect::ALL.into_iter().find(|effect| effect.as_str() == word);
    let names = Effect::ALL.map(Effect::as_str).join(", ");
    effect
        .map(Some)
        .ok_or_else(|| wrong("effect", &format!("one of {names}"), &Value::from(word)))
}

/// Reads an optional list of strings.
pub(super) fn texts(data: &Object, key: &str) -> Result<Option<Vec<String>>, WireError> {
    let accepted = "a list of strings";
    match data.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| {
                item.as_str()
                    .map(str::to_owned)
                    .ok_or_else(|| wrong(key, accepted, item))
            })
            .collect::<Result<_, _>>()
            .map(Some),
        Some(other) => Err(wrong(key, accepted, other)),
    }
}

/// Reads a flag; false if it is missing.
pub(super) fn flag(data: &Object, key: &str) -> Result<bool, WireError> {
    match data.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(wrong(key, "true or false", other)),
    }
}

/// Whether a text may be the id of a call.
pub(super) fn is_call_id(text: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"._:-".contains(&b);
    (1..=128).contains(&text.len()) && text.bytes().all(legal)
}

pub(super) fn call_id(data: &Object) -> Result<Option<String>, WireError> {
    match data.get("call_id") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) if is_call_id(id) => Ok(Some(id.clone())),
        Some(other) => Err(wrong("call_id", "1 to 128 characters of [A-Za-z0-9._:-]", other)),
    }
}

fn token(data: &Object, key: &str) -> Result<Option<String>, WireError> {
    match text(data, key)? {
        Some(token) if token.is_empty() || token.len() > 128 => {
            let accepted = "the token of the answer that asks to confirm the call";
            Err(wrong(key, accepted, &Value::from(token)))
        }
        token => Ok(token),
    }
}

/// Reads an optional whole number in a range.
pub(super) fn whole(data: &Object, key: &str, least: u64, most: u64) -> Result<Option<u64>, WireError> {
    match data.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(wrong(
                key,
                &format!("a whole number from {least} to {most}"),
                value,
            )),
        },
    }
}

fn timeout_ms(data: &Object) -> Result<Option<u64>, WireError> {
    /// The longest timeout, a month: beyond it clocks overflow, and no client waits that long.
    const LONGEST: u64 = 31 * 24 * 3600 * 1000;
    match data.get("timeout_ms") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(ms) if (1..=LONGEST).contains(&ms) => Ok(Some(ms)),
            _ => Err(wrong(
                "timeout_ms",
                &format!("an integer of milliseconds from 1 to {LONGEST}"),
                value,
            )),
        },
    }
}

fn wrong(key: &str, accepted: &str, found: &Value) -> WireError {
    WireError::new(
        FailureKind::ValueError,
        format!("'{key}' must be {accepted}, got {}", shorten(found)),
    )
}
