//! The log level and the log file: the `logging` section that every OVOS service reads.
//!
//! A wrong value never stops the service: it is reported as a notice, and the default is used.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::error::{ConfigError, Notice};
use super::merge::lookup;
use super::origin::{Origin, Setting, dotted};
use super::paths::{Environment, Xdg, base_folder};
use super::text::describe;
use super::{SERVICE_NAME, layers::Stack};

/// The log level and the log file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// `log_level`, from `logging.ovos_tools`, else `logging`, else the top level (older spelling), else
    /// `$OVOS_DEFAULT_LOG_LEVEL`. Default `INFO`.
    pub level: LogLevel,
    /// `logs.path`: the folder of `ovos_tools.log`. `None` for `stdout`, with which OVOS turns the file off. Default
    /// `$XDG_STATE_HOME/mycroft`.
    pub dir: Option<PathBuf>,
    /// `logs.max_bytes`: the size in bytes at which the file is rotated; 0 means never. Default 50000000.
    pub max_bytes: u64,
    /// `logs.backup_count`: how many rotated files are kept, up to 1000; with 0 the file is never rotated. Default 3.
    pub backup_count: u32,
}

/// A log level, with Python's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// `TRACE`, and `NOTSET`.
    Trace,
    /// `DEBUG`.
    Debug,
    /// `INFO`.
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

/// Reads the log settings of the stack and collects their origins and notices.
pub(super) struct Reader<'a> {
    pub(super) env: &'a dyn Environment,
    pub(super) xdg: &'a Xdg,
    pub(super) stack: &'a Stack,
    pub(super) settings: Vec<Setting>,
    pub(super) notices: Vec<Notice>,
}

impl Reader<'_> {
    pub(super) fn read(&mut self) -> LogConfig {
        let stack = self.stack;
        let level = match written_level(stack.merged()) {
            Some((path, value)) => self.checked(&path, value, LEVELS, LogLevel::from_value),
            None => self.environment_level(),
        };
        let (level, origin) = level.unwrap_or((LogLevel::Info, Origin::Default));
        self.show("log_level", json!(level.as_str()), origin);

        let (path, logs) = written_logs(stack.merged());
        let part = |key: &'static str| [path.as_slice(), &[key]].concat();
        let value = |key: &str| {
            logs.and_then(|logs| logs.get(key))
                .filter(|value| !value.is_null())
        };

        let xdg = self.xdg;
        let folder = |value: &Value| match value.as_str()? {
            "stdout" => Some(None),
            written => xdg.expand(written).map(Some),
        };
        let written = value("path").filter(|path| path.as_str() != Some(""));
        let accepted = "an absolute path, one that starts with ~/, or \"stdout\"";
        let dir = written.and_then(|value| self.checked(&part("path"), value, accepted, folder));
        let (dir, origin) = dir.unwrap_or_else(|| {
            (
                Some(self.xdg.state_home.join(base_folder(self.env))),
                Origin::Default,
            )
        });
        self.show(
            "logs.path",
            json!(dir.as_ref().map_or("stdout".into(), |dir| dir.to_string_lossy())),
            origin,
        );

        let number = "a whole number, 0 or more";
        let bytes = value("max_bytes")
            .and_then(|value| self.checked(&part("max_bytes"), value, number, Value::as_u64));
        let (max_bytes, origin) = bytes.unwrap_or((50_000_000, Origin::Default));
        self.show("logs.max_bytes", json!(max_bytes), origin);

        let count = |value: &Value| {
            value
                .as_u64()
                .filter(|count| *count <= 1000)
                .and_then(|count| count.try_into().ok())
        };
        let kept = "a whole number from 0 to 1000";
        let backups =
            value("backup_count").and_then(|value| self.checked(&part("backup_count"), value, kept, count));
        let (backup_count, origin) = backups.unwrap_or((3, Origin::Default));
        self.show("logs.backup_count", json!(backup_count), origin);

        LogConfig {
            level,
            dir,
            max_bytes,
            backup_count,
        }
    }

    fn environment_level(&mut self) -> Option<(LogLevel, Origin)> {
        const NAME: &str = "OVOS_DEFAULT_LOG_LEVEL";
        let written = self.env.var(NAME).filter(|level| !level.is_empty())?;
        let level = LogLevel::from_value(&Value::String(written.clone()));
        if level.is_none() {
            self.notices.push(Notice::Defaulted(ConfigError::WrongValue {
                origin: Origin::Variable(NAME),
                key: "level".to_owned(),
                found: format!("{written:?}"),
                accepted: LEVELS.to_owned(),
            }));
        }
        level.map(|level| (level, Origin::Variable(NAME)))
    }

    /// Parses a written value and returns it with its origin; adds a notice if it is wrong.
    fn checked<T>(
        &mut self,
        path: &[&str],
        value: &Value,
        accepted: &str,
        parse: impl Fn(&Value) -> Option<T>,
    ) -> Option<(T, Origin)> {
        let origin = self.stack.origin(path);
        let parsed = parse(value);
        if parsed.is_none() {
            self.notices.push(Notice::Defaulted(ConfigError::WrongValue {
                origin: origin.clone(),
                key: dotted(path.iter().copied()),
                found: describe(value),
                accepted: accepted.to_owned(),
            }));
        }
        parsed.map(|parsed| (parsed, origin))
    }

    fn show(&mut self, key: &str, value: Value, origin: Origin) {
        self.settings.push(Setting {
            key: format!("logging.{key}"),
            value,
            origin,
        });
    }
}

/// Returns the written level with the highest precedence, and its path.
fn written_level(merged: &Map<String, Value>) -> Option<(Vec<&'static str>, &Value)> {
    let places = [
        vec!["logging", SERVICE_NAME, "log_level"],
        vec!["logging", "log_level"],
        vec!["log_level"],
    ];
    places.into_iter().find_map(|path| {
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
fn written_logs(merged: &Map<String, Value>) -> (Vec<&'static str>, Option<&Map<String, Value>>) {
    let places = [
        vec!["logging", SERVICE_NAME, "logs"],
        vec!["logging", "logs"],
        vec!["logs"],
    ];
    for path in places {
        if let Some(logs) = lookup(merged, &path)
            .and_then(Value::as_object)
            .filter(|logs| !logs.is_empty())
        {
            return (path, Some(logs));
        }
    }
    (vec!["logging", "logs"], None)
}
