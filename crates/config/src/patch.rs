//! `configuration.patch` from the bus. [`Patch`] keeps the one thing such a message may change in this service, the
//! log level; everything else it holds is told and dropped. Pure: the caller logs and applies.

use serde_json::{Map, Value};

use super::logging::{self, LogLevel};
use super::{Config, OURS};

/// What patches have asked for so far. Later patches replace whole top-level keys of earlier ones, as in OVOS.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Patch {
    kept: Map<String, Value>,
}

/// What one `configuration.patch` message held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchReport {
    /// The message tried to change our own section. It was ignored and deserves a warning with its source.
    pub touches_us: bool,
    /// The message spoke of logging; compare [`Patch::level`] with the level in force.
    pub touches_logging: bool,
    /// Top-level keys that have no effect here, sorted.
    pub ignored: Vec<String>,
}

impl Patch {
    /// Takes the data of one `configuration.patch` message, `{"config": {...}}`. Of `logging` only the level is ever
    /// used: a path from the bus would let any client choose where this process writes.
    pub fn accept(&mut self, data: &Map<String, Value>) -> PatchReport {
        let mut report = PatchReport::default();
        let Some(config) = data.get("config").and_then(Value::as_object) else {
            return report;
        };
        for (key, value) in config {
            match key.as_str() {
                "logging" | "log_level" => {
                    report.touches_logging = true;
                    self.kept.insert(key.clone(), value.clone());
                }
                _ => report.ignored.push(key.clone()),
            }
            report.touches_us |=
                key == "PHAL" && value.as_object().is_none_or(|phal| phal.contains_key(OURS));
        }
        report.ignored.sort_unstable();
        report
    }

    /// Forgets all patches, for `configuration.patch.clear`.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// The log level in force: the files' level, or what patches made of it where the administrator's protections
    /// (`system.disable_user_config`, `system.protected_keys.user`) let them.
    #[must_use]
    pub fn level(&self, config: &Config) -> LogLevel {
        if self.kept.is_empty() {
            return config.logging.level;
        }
        logging::level(&config.stack().patched(&self.kept)).unwrap_or(config.logging.level)
    }
}
