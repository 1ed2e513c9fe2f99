//! `configuration.patch` from the bus. Such a message may change only the log level of this service, so [`Patch`] keeps only
//! that. Pure: the caller logs the report and applies the level.

use serde_json::{Map, Value};

use super::config::Config;
use super::logging::{self, LogLevel};
use super::names::OURS;

/// The accepted content of all patches so far. A later patch replaces whole top-level keys of earlier ones, as in
/// OVOS.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Patch {
    accepted: Map<String, Value>,
}

/// What one `configuration.patch` message contained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PatchReport {
    /// The message has a section of this service, which is ignored. Log a warning with the source of the message.
    pub touches_us: bool,
    /// The message contained logging keys; compare [`Patch::level`] with the level in force.
    pub touches_logging: bool,
}

impl Patch {
    /// Accepts the data of one `configuration.patch` message, `{"config": {...}}`. Of `logging` only the level is
    /// ever used: a path from the bus would let any client choose where this process writes.
    pub fn accept(&mut self, data: &Map<String, Value>) -> PatchReport {
        let mut report = PatchReport::default();
        let Some(config) = data.get("config").and_then(Value::as_object) else {
            return report;
        };
        for (key, value) in config {
            if matches!(key.as_str(), "logging" | "log_level") {
                report.touches_logging = true;
                self.accepted.insert(key.clone(), value.clone());
            }
            report.touches_us |=
                key == "PHAL" && value.as_object().is_none_or(|phal| phal.contains_key(OURS));
        }
        report
    }

    /// Returns the log level in force: that of the files, or that of the patches where the administrator's
    /// protections (`system.disable_user_config`, `system.protected_keys.user`) allow it.
    #[must_use]
    pub fn level(&self, config: &Config) -> LogLevel {
        if self.accepted.is_empty() {
            return config.logging.level;
        }
        logging::level(&config.stack().patched(&self.accepted)).unwrap_or(config.logging.level)
    }
}
