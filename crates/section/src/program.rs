//! A program that the configuration names as a toolbox. Read [`ProgramConfig`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Confine;
use crate::fields::{checked, variables};

/// One entry of `service.programs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramConfig {
    /// The key of the entry.
    #[serde(skip)]
    pub name: String,
    /// The program to execute: an absolute path, or a name that is searched in the service's `PATH`. Arguments may follow in a
    /// list.
    #[serde(deserialize_with = "command")]
    pub command: Vec<String>,
    /// Further arguments.
    #[serde(deserialize_with = "arguments")]
    pub args: Vec<String>,
    /// Variables added to the environment of its process.
    #[serde(deserialize_with = "variables")]
    pub env: BTreeMap<String, String>,
    /// Whether the program is started.
    pub enabled: bool,
    /// The toolboxes that it may offer: ids, or the beginnings of ids with `*`. Default: its own name.
    #[serde(deserialize_with = "offers")]
    pub toolboxes: Vec<String>,
    /// `confine`: what its process may access. Default: what the section of its toolbox allows.
    #[serde(skip)]
    pub confine: Option<Confine>,
    /// For a host of OPM toolboxes: the revisions of the packages that are installed for it. Other revisions need another process.
    #[serde(skip)]
    pub revisions: Option<Vec<String>>,
    /// For a host of OPM toolboxes: the paths from which its interpreter imports.
    #[serde(skip)]
    pub imports: Vec<PathBuf>,
    /// For a program that mounts a server: the command that starts the server, and its arguments; empty for a server with a URL.
    #[serde(skip)]
    pub mounted: Option<Vec<String>>,
}

impl ProgramConfig {
    /// An entry with nothing but its name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            command: Vec::new(),
            args: Vec::new(),
            env: BTreeMap::new(),
            enabled: true,
            toolboxes: vec![name.to_owned()],
            confine: None,
            revisions: None,
            imports: Vec::new(),
            mounted: None,
        }
    }

    /// Whether it may offer the toolbox with this id.
    #[must_use]
    pub fn may_offer(&self, id: &str) -> bool {
        is_among(&self.toolboxes, id)
    }

    /// The id of its toolbox, if it may offer only one toolbox.
    #[must_use]
    pub fn only_toolbox(&self) -> Option<&str> {
        match self.toolboxes.as_slice() {
            [id] if !id.ends_with('*') => Some(id),
            _ => None,
        }
    }
}

/// Whether a list of ids, or beginnings of ids with `*`, includes an id.
pub(crate) fn is_among(allowed: &[String], id: &str) -> bool {
    allowed.iter().any(|allowed| match allowed.strip_suffix('*') {
        Some(beginning) => id.starts_with(beginning),
        None => id == allowed,
    })
}

/// Whether a text can be an argument. The reader of the section replaces `~/`.
fn is_argument(text: &str) -> bool {
    !text.contains('\0') && !text.starts_with("~/")
}

/// Whether a text is a path that does not depend on a working directory, or the name of a program.
pub(crate) fn is_program(text: &str) -> bool {
    let name = !text.is_empty() && !text.contains('/') && !text.contains(char::is_whitespace);
    is_argument(text) && (text.starts_with('/') || name)
}

fn command<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let accepted = "an absolute path, one that starts with ~/ or the name of a program in PATH; or a list of that and of arguments";
    checked(from, accepted, |written: Value| {
        let words: Vec<String> = match written {
            Value::String(one) => vec![one],
            list => serde_json::from_value(list).ok()?,
        };
        let good = words.first().is_some_and(|first| is_program(first))
            && words.iter().all(|word| is_argument(word));
        good.then_some(words)
    })
}

fn arguments<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    checked(from, "a list of strings", |words: Vec<String>| {
        words.iter().all(|word| is_argument(word)).then_some(words)
    })
}

pub(crate) fn offers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    let good = |written: &String| {
        let beginning = written.strip_suffix('*');
        let text = beginning.unwrap_or(written);
        let whole = beginning.is_some() || (!text.is_empty() && !matches!(text, "service" | "all"));
        whole && text.len() <= 64 && text.bytes().all(legal)
    };
    let accepted = "a list of toolbox ids (a-z, 0-9, _ and -), or of their beginnings with a * at the end";
    checked(from, accepted, |written: Vec<String>| {
        (!written.is_empty() && written.iter().all(good)).then_some(written)
    })
}
