//! The log level and the log file: the `logging` section that every OVOS service reads.
//!
//! A wrong value never stops the service: it is reported as a notice, and the default is used.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::error::ConfigError;
use super::merge::lookup;
use super::names::SERVICE_NAME;
use super::origin::{Origin, Setting, dotted};
use super::paths::{Environment, base_folder};
use super::reader::Reader;
use super::text::describe;
use section::fields::{Whole, absolute, checked};

/// The log level, and the keys of `logs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogConfig {
    /// `log_level`, from `logging.ovos_tools`, else `logging`, else the top level (older spelling), else
    /// `$OVOS_DEFAULT_LOG_LEVEL`.
    #[serde(skip)]
    pub level: LogLevel,
    /// The folder of `ovos_tools.log`. `None` for `stdout`, with which OVOS turns the file off.
    #[serde(rename = "path", with = "Folder")]
    pub dir: Option<PathBuf>,
    /// The size in bytes at which the file is rotated; 0 means never.
    #[serde(with = "Whole::<0, { u64::MAX }>")]
    pub max_bytes: u64,
    /// How many rotated files are kept; with 0 the file is never rotated.
    #[serde(with = "Whole::<0, 1000>")]
    pub backup_count: u32,
}

/// A log level, with Python's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// `TRACE`, and `NOTSET`.
    Trace,
    /// `DEBUG`.
    Debug,
    /// `INFO`.
    #[default]
    Info,
    /// `WARNING`, also `WARN`.
    Warning,
    /// `ERROR`, also `CRITICAL` and `FATAL`: this service has no level above an error.
    Error,
}

const LEVELS: &str =
    "one of \"CRITICAL\", \"ERROR\", \"WARNING\", \"INFO\", \"DEBUG\", \"TRACE\", or a Python level number";

impl LogLevel {
    /// Parses a level: a name in any case, or Python's number.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Self> {
        let Some(name) = value.as_str() else {
            return value.as_u64().map(|number| match number {
                0..10 => Self::Trace,
                10..20 => Self::Debug,
                20..30 => Self::Info,
                30..40 => Self::Warning,
                _ => Self::Error,
            });
        };
        Some(match name.trim().to_ascii_uppercase().as_str() {
            "TRACE" | "NOTSET" => Self::Trace,
            "DEBUG" => Self::Debug,
            "INFO" => Self::Info,
            "WARNING" | "WARN" => Self::Warning,
            "ERROR" | "CRITICAL" | "FATAL" => Self::Error,
            _ => return None,
        })
    }

    /// Python's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }
}

impl LogConfig {
    /// Reads the settings. The caller reports the errors as notices.
    pub(super) fn read(reader: &mut Reader<'_>, env: &dyn Environment) -> Self {
        let (level, origin) = read_level(reader, env).unwrap_or((LogLevel::default(), Origin::Default));
        reader.settings.push(Setting {
            key: "logging.log_level".to_owned(),
            value: json!(level.as_str()),
            origin,
        });
        let (path, mut written) = written_logs(reader.stack.merged());
        if written.get("path") == Some(&json!("")) {
            written.shift_remove("path");
        }
        let defaults = Self {
            level,
            dir: Some(reader.xdg.state_home.join(base_folder(env))),
            max_bytes: 50_000_000,
            backup_count: 3,
        };
        let (logs, _) = reader.open(&path, written, defaults);
        for setting in &mut reader.settings[1..] {
            setting.key = setting
                .key
                .replacen(&dotted(path.iter().copied()), "logging.logs", 1);
        }
        Self { level, ..logs }
    }
}

/// Returns the level set in the files, else that of the environment.
fn read_level(reader: &mut Reader<'_>, env: &dyn Environment) -> Option<(LogLevel, Origin)> {
    const NAME: &str = "OVOS_DEFAULT_LOG_LEVEL";
    let stack = reader.stack;
    if let Some((path, value)) = written_level(stack.merged()) {
        let level = LogLevel::from_value(value);
        if level.is_none() {
            reader.wrong(&path, describe(value), LEVELS);
        }
        return Some((level?, stack.origin(&path)));
    }
    let written = env.var(NAME).filter(|level| !level.is_empty())?;
    let level = LogLevel::from_value(&json!(written));
    if level.is_none() {
        reader.errors.push(ConfigError::WrongValue {
            origin: Origin::Variable(NAME),
            key: "level".to_owned(),
            found: format!("{written:?}"),
            accepted: LEVELS.to_owned(),
        });
    }
    Some((level?, Origin::Variable(NAME)))
}

/// A folder, or `None` for `stdout`.
struct Folder;

impl Folder {
    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        let accepted = "an absolute path, one that starts with ~/, or \"stdout\"";
        checked(from, accepted, |text: String| match text.as_str() {
            "stdout" => Some(None),
            path => absolute(path).map(Some),
        })
    }

    fn serialize<S: Serializer>(dir: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        match dir {
            Some(dir) => dir.serialize(to),
            None => to.serialize_str("stdout"),
        }
    }
}

/// Returns the written level with the highest precedence, and its path.
fn written_level(merged: &Map<String, Value>) -> Option<(Vec<&'static str>, &Value)> {
    places("log_level").into_iter().find_map(|path| {
        let value = lookup(merged, &path).filter(|value| !value.is_null())?;
        Some((path, value))
    })
}

/// Returns the level set in a merge, if it is a valid one.
pub(super) fn level(merged: &Map<String, Value>) -> Option<LogLevel> {
    LogLevel::from_value(written_level(merged)?.1)
}

/// Returns the `logs` object with the highest precedence, and its path. The objects are not merged with each other:
/// if the service's `logs` has only a path, the sizes are the built-in ones, as in OVOS.
fn written_logs(merged: &Map<String, Value>) -> (Vec<&'static str>, Map<String, Value>) {
    let written = places("logs").into_iter().find_map(|path| {
        let logs = lookup(merged, &path)?.as_object()?.clone();
        (!logs.is_empty()).then_some((path, logs))
    });
    written.unwrap_or_else(|| (vec!["logging", "logs"], Map::new()))
}

/// Returns the places of a key, the one with the highest precedence first.
fn places(key: &'static str) -> [Vec<&'static str>; 3] {
    [
        vec!["logging", SERVICE_NAME, key],
        vec!["logging", key],
        vec![key],
    ]
}
