//! How the fields of sections are written: functions for the serde attributes `with` and `deserialize_with`. Each
//! refuses a wrong value with "expected" and what it accepts.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::{DeserializeOwned, Error, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Turns the written value into that of a field.
pub(super) fn checked<'de, D: Deserializer<'de>, W: Deserialize<'de>, T>(
    from: D,
    accepted: impl Display,
    check: impl FnOnce(W) -> Option<T>,
) -> Result<T, D::Error> {
    let value = W::deserialize(from).ok().and_then(check);
    value.ok_or_else(|| D::Error::custom(format_args!("expected {accepted}")))
}

/// A whole number from `MIN` to `MAX`, where `u64::MAX` is no limit.
pub(super) struct Whole<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    pub(super) fn deserialize<'de, D: Deserializer<'de>, T: TryFrom<u64>>(from: D) -> Result<T, D::Error> {
        let accepted = match MAX {
            u64::MAX => format!("a whole number, {MIN} or more"),
            _ => format!("a whole number from {MIN} to {MAX}"),
        };
        checked(from, accepted, |number: u64| {
            T::try_from(number).ok().filter(|_| (MIN..=MAX).contains(&number))
        })
    }

    pub(super) fn serialize<T: Serialize, S: Serializer>(number: &T, to: S) -> Result<S::Ok, S::Error> {
        number.serialize(to)
    }
}

/// A duration from `MIN` to `MAX` milliseconds, written as a whole number of them.
pub(super) struct Millis<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Millis<MIN, MAX> {
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let accepted = format!("a whole number of milliseconds from {MIN} to {MAX}");
        checked(from, accepted, |ms: u64| {
            (MIN..=MAX).contains(&ms).then(|| Duration::from_millis(ms))
        })
    }

    pub(super) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        duration.as_millis().serialize(to)
    }
}

/// One of a few words. (For a value that is no text, serde alone does not name the words.)
pub(super) fn word<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<T, D::Error> {
    let text = String::deserialize(from).unwrap_or_default();
    T::deserialize(text.into_deserializer())
}

/// A host name or address.
pub(super) fn host<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    checked(from, "a host name or address", |text: String| trimmed(&text))
}

/// The text without surrounding blanks, if anything is left.
pub(super) fn trimmed(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// A list of texts, none of them empty.
pub(super) fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    checked(from, "a list of texts", |texts: Vec<String>| {
        texts.iter().all(|text| !text.trim().is_empty()).then_some(texts)
    })
}

const A_PATH: &str = "an absolute path or one that starts with ~/";

/// A path. The reader of the section replaces `~/`.
pub(super) fn path<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    checked(from, A_PATH, |text: String| absolute(&text))
}

/// A path or none.
pub(super) fn optional_path<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    checked(from, A_PATH, |text: Option<String>| match text {
        Some(text) => absolute(&text).map(Some),
        None => Some(None),
    })
}

/// A list of paths; a single path may be written without the brackets.
pub(super) fn paths<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
    let accepted = format!("{A_PATH}, or a list of such paths");
    checked(from, accepted, |written: Value| match written {
        Value::Array(items) => items.iter().map(|item| absolute(item.as_str()?)).collect(),
        one => Some(vec![absolute(one.as_str()?)?]),
    })
}

pub(super) fn absolute(text: &str) -> Option<PathBuf> {
    Some(PathBuf::from(text)).filter(|path| path.is_absolute())
}
