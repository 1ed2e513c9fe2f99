//! The origin of values. [`Setting`] is one line of `ovos-tools config`: key, value in force, origin.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

/// The source of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The built-in default.
    Default,
    /// A file of the mycroft.conf stack, or the one given with `--config`.
    File(PathBuf),
    /// An option of the command line, such as `--bus`.
    Option(&'static str),
    /// An environment variable.
    Variable(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => out.write_str("default"),
            Self::File(path) => write!(out, "{}", path.display()),
            Self::Option(name) => out.write_str(name),
            Self::Variable(name) => write!(out, "${name}"),
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

/// One value in force, in the form it has in a file, with its origin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// The dotted key; parts with characters other than letters, digits and `_` are quoted.
    pub key: String,
    /// The value in force. `null` stands for "none".
    pub value: Value,
    /// Its origin.
    pub origin: Origin,
}

/// Joins the parts of a key with dots: `PHAL."ovos-phal-plugin-tools".service.grace_ms`.
pub(super) fn dotted<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut key = String::new();
    for part in parts {
        if !key.is_empty() {
            key.push('.');
        }
        let plain = !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if plain {
            key.push_str(part)
        } else {
            key.push_str(&format!("{part:?}"))
        }
    }
    key
}
