//! The errors of a configuration. Each message names the file, the key, the value found and what is accepted.
//! [`ConfigErrors`] is the result of a failed load and has all of them at once, so that a file can be fixed in one
//! pass.

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

use super::origin::Origin;

/// One error of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// An unknown key in a section that accepts only known ones.
    #[error("{origin}: {key}: unknown key{}; accepted: {}", did_you_mean(suggestion.as_deref()), accepted.join(", "))]
    UnknownKey {
        /// The file or option in which the key was written.
        origin: Origin,
        /// The dotted key.
        key: String,
        /// The most similar accepted key, if one is similar enough.
        suggestion: Option<String>,
        /// Every accepted key, sorted.
        accepted: Vec<String>,
    },
    /// A value of the wrong type or outside its range.
    #[error("{origin}: {key}: found {found}, expected {accepted}")]
    WrongValue {
        /// The file or option in which the value was written.
        origin: Origin,
        /// The dotted key, or the command line option.
        key: String,
        /// The value found, shortened.
        found: String,
        /// The accepted values, with unit and range.
        accepted: String,
    },
    /// The name of a toolbox's section is not a valid toolbox_id.
    #[error("{origin}: {key}: {name:?} cannot be a toolbox_id: {reason}")]
    ToolboxId {
        /// The file in which the name was written.
        origin: Origin,
        /// The dotted key.
        key: String,
        /// The name.
        name: String,
        /// The rule that the name breaks.
        reason: &'static str,
    },
    /// The bus is configured for the deprecated frame encryption, which this service does not speak.
    #[error(
        "{origin}: websocket.secret_key: encrypted bus frames are deprecated and not supported; remove the key \
         here and from the other services, and use websocket.ssl for a bus that leaves this machine"
    )]
    Encrypted {
        /// The file in which the encryption was written.
        origin: Origin,
    },
    /// The embedded bus is enabled while the bus address requires TLS, which the embedded bus does not support.
    #[error(
        "{origin}: embedded_bus: {mode}: the embedded bus has no TLS, but the bus address is {url}; set embedded_bus to \
         \"never\" and run a bus with TLS, or set websocket.ssl to false (--bus to a ws:// address)"
    )]
    EmbeddedTls {
        /// Where the embedded bus was enabled.
        origin: Origin,
        /// The value of `embedded_bus`.
        mode: Value,
        /// The address of the bus.
        url: String,
    },
    /// The file given with `--config` cannot be used. (Broken files in default locations are skipped instead.)
    #[error("--config {}: {reason}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion
        .map(|name| format!(" (did you mean {name:?}?)"))
        .unwrap_or_default()
}

/// All errors, in the order in which they were found; never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// Returns `Ok(value)` if there are no errors, else `Err` with all of them.
    pub(super) fn check<T>(value: T, findings: Vec<ConfigError>) -> Result<T, Self> {
        if findings.is_empty() {
            Ok(value)
        } else {
            Err(Self(findings))
        }
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

/// A problem to report to the operator that does not stop the service. Log it once logging has started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    /// A layer could not be read or parsed.
    #[error("{}: {reason}; {stands_in}", path.display())]
    BrokenLayer {
        /// The file.
        path: PathBuf,
        /// Why it could not be read or parsed.
        reason: String,
        /// What is used in its place.
        stands_in: StandsIn,
    },
    /// A file is missing that had our section when the service last ran.
    #[error(
        "{}: this file existed with settings of ovos-tools when the service last started, and is now missing, so they no longer apply",
        .0.display()
    )]
    Gone(PathBuf),
    /// A value in a section that belongs to all of OVOS is wrong; its default is used.
    #[error("{0}; the default is used")]
    Defaulted(ConfigError),
    /// A mount's name gives an id that the mount cannot have.
    #[error("{0}; this mount is left out")]
    LeftOut(ConfigError),
    /// A key has no effect any more.
    #[error("{origin}: {key}: this key has no effect any more: {instead}; remove the key")]
    Retired {
        /// The file in which it was written.
        origin: Origin,
        /// The dotted key.
        key: String,
        /// What is in its place.
        instead: &'static str,
    },
    /// A mount in the form of another host has keys that have no effect here.
    #[error("{origin}: {key}: ignored keys that only other MCP hosts use: {}", unused.join(", "))]
    NotUsed {
        /// The file in which the mount was written.
        origin: Origin,
        /// The dotted key of the mount.
        key: String,
        /// The keys without an effect.
        unused: Vec<String>,
    },
}

/// What is used in the place of a file that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandsIn {
    /// The content that is in force since an earlier read.
    InForce,
    /// The copy of its last good content.
    Copy,
    /// Nothing.
    Nothing,
}

impl fmt::Display for StandsIn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::InForce => "its last good content stays in force",
            Self::Copy => "the copy of its last good content stands in",
            Self::Nothing => "this file is skipped",
        })
    }
}
