//! A Python interpreter whose OPM toolboxes are hosted. Read [`PythonConfig`].

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Confine;
use crate::fields::{checked, variables};
use crate::program::{is_among, is_program, offers};

/// An entry of `service.programs` with the key `interpreter`, or the built-in one, `python`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PythonConfig {
    /// The key of the entry.
    #[serde(skip)]
    pub name: String,
    /// Whether its toolboxes are hosted. `"auto"`: only if it has toolboxes. Otherwise an interpreter without toolboxes is a
    /// failure.
    pub enabled: Switch,
    /// The interpreter: an absolute path, or a name that is searched in the service's `PATH`. Without it the first `python3` in
    /// `$VIRTUAL_ENV/bin` and `PATH` that has an OPM toolbox.
    #[serde(deserialize_with = "interpreter")]
    pub interpreter: Option<String>,
    /// Whether each toolbox has a process of its own.
    pub alone: bool,
    /// Variables added to the environment of its process.
    #[serde(deserialize_with = "variables")]
    pub env: BTreeMap<String, String>,
    /// The toolboxes that it may offer: ids, or the beginnings of ids with `*`. Default: the entry points of what is installed.
    #[serde(deserialize_with = "offers")]
    pub toolboxes: Vec<String>,
    /// `confine`: what it may access. Without it: what the sections of its toolboxes say.
    #[serde(skip)]
    pub confine: Option<Confine>,
}

/// Whether an entry is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// It is used.
    On,
    /// It is not used.
    Off,
    /// It is used if it exists.
    Auto,
}

impl PythonConfig {
    /// The name of the entry that exists without configuration.
    pub const BUILT_IN: &'static str = "python";

    /// An entry with nothing but its name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let enabled = if name == Self::BUILT_IN {
            Switch::Auto
        } else {
            Switch::On
        };
        Self {
            name: name.to_owned(),
            enabled,
            interpreter: None,
            alone: false,
            env: BTreeMap::new(),
            toolboxes: vec!["*".to_owned()],
            confine: None,
        }
    }

    /// Whether it may offer the toolbox with this id.
    #[must_use]
    pub fn may_offer(&self, id: &str) -> bool {
        is_among(&self.toolboxes, id)
    }
}

impl Serialize for Switch {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::On => true.serialize(to),
            Self::Off => false.serialize(to),
            Self::Auto => "auto".serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Switch {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        checked(from, "true, false or \"auto\"", |written: Value| match &written {
            Value::Bool(true) => Some(Self::On),
            Value::Bool(false) => Some(Self::Off),
            Value::String(text) if text == "auto" => Some(Self::Auto),
            _ => None,
        })
    }
}

fn interpreter<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let accepted = "an absolute path, one that starts with ~/ or the name of a Python interpreter in PATH";
    checked(from, accepted, |written: Option<String>| match written {
        Some(path) => is_program(&path).then_some(Some(path)),
        None => Some(None),
    })
}
