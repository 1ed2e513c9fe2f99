//! How the fields of sections are written: functions for the serde attributes `with` and `deserialize_with`. Each
//! refuses a wrong value with "expected" and what it accepts.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::{DeserializeOwned, Error, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Turns the written value into that of a field.
///
/// # Errors
/// "expected", and what is accepted.
pub fn checked<'de, D: Deserializer<'de>, W: Deserialize<'de>, T>(
    from: D,
    accepted: impl Display,
    check: impl FnOnce(W) -> Option<T>,
) -> Result<T, D::Error> {
    let value = W::deserialize(from).ok().and_then(check);
    value.ok_or_else(|| D::Error::custom(format_args!("expected {accepted}")))
}

/// A whole number from `MIN` to `MAX`, where `u64::MAX` is no limit.
pub struct Whole<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    /// Reads the number.
    ///
    /// # Errors
    /// The number is not in the range.
    pub fn deserialize<'de, D: Deserializer<'de>, T: TryFrom<u64>>(from: D) -> Result<T, D::Error> {
        let accepted = match MAX {
            u64::MAX => format!("a whole number, {MIN} or more"),
            _ => format!("a whole number from {MIN} to {MAX}"),
        };
        checked(from, accepted, |number: u64| {
            T::try_from(number).ok().filter(|_| (MIN..=MAX).contains(&number))
        })
    }

    /// Writes the number.
    ///
    /// # Errors
    /// The errors of `to`.
    pub fn serialize<T: Serialize, S: Serializer>(number: &T, to: S) -> Result<S::Ok, S::Error> {
        number.serialize(to)
    }
}

/// A duration from `MIN` to `MAX` milliseconds, written as a whole number of them.
pub struct Millis<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Millis<MIN, MAX> {
    /// Reads the duration.
    ///
    /// # Errors
    /// The duration is not in the range.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let accepted = format!("a whole number of milliseconds from {MIN} to {MAX}");
        checked(from, accepted, |ms: u64| {
            (MIN..=MAX).contains(&ms).then(|| Duration::from_millis(ms))
        })
    }

    /// Writes the duration.
    ///
    /// # Errors
    /// The errors of `to`.
    pub fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        duration.as_millis().serialize(to)
    }
}

/// One of a few words. (For a value that is no text, serde alone does not name the words.)
///
/// # Errors
/// "expected", and what is accepted.
pub fn word<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<T, D::Error> {
    let text = String::deserialize(from).unwrap_or_default();
    T::deserialize(text.into_deserializer())
}

/// A host name or address.
///
/// # Errors
/// "expected", and what is accepted.
pub fn host<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    checked(from, "a host name or address", |text: String| trimmed(&text))
}

/// The text without surrounding blanks, if anything is left.
#[must_use]
pub fn trimmed(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// A list of texts, none of them empty.
///
/// # Errors
/// "expected", and what is accepted.
pub fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    checked(from, "a list of strings", |texts: Vec<String>| {
        texts.iter().all(|text| !text.trim().is_empty()).then_some(texts)
    })
}

const A_PATH: &str = "an absolute path or one that starts with ~/";

/// A path. The reader of the section replaces `~/`.
///
/// # Errors
/// "expected", and what is accepted.
pub fn path<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    checked(from, A_PATH, |text: String| absolute(&text))
}

/// A path or none.
///
/// # Errors
/// "expected", and what is accepted.
pub fn optional_path<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    checked(from, A_PATH, |text: Option<String>| match text {
        Some(text) => absolute(&text).map(Some),
        None => Some(None),
    })
}

/// A list of paths; a single path may be written without the brackets.
///
/// # Errors
/// "expected", and what is accepted.
pub fn paths<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
    let accepted = format!("{A_PATH}, or a list of such paths");
    checked(from, accepted, |written: Value| match written {
        Value::Array(items) => items.iter().map(|item| absolute(item.as_str()?)).collect(),
        one => Some(vec![absolute(one.as_str()?)?]),
    })
}

/// The path, if it is absolute.
#[must_use]
pub fn absolute(text: &str) -> Option<PathBuf> {
    Some(PathBuf::from(text)).filter(|path| path.is_absolute())
}

/// A list of SHA-256 hashes.
pub(super) fn hashes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let accepted = "a list of SHA-256 hashes, each 64 hexadecimal digits";
    let good = |hash: &String| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    checked(from, accepted, |hashes: Vec<String>| {
        hashes.iter().all(good).then_some(hashes)
    })
}

/// Variables of an environment.
pub(super) fn variables<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let good = |(name, text): (&String, &String)| {
        !name.is_empty() && !name.contains(['=', '\0']) && !text.contains('\0')
    };
    checked(
        from,
        "an object of variable names and strings",
        |env: BTreeMap<String, String>| env.iter().all(good).then_some(env),
    )
}
