//! What can go wrong on the command line, and the exit code of each kind.

use std::io;
use std::time::Duration;

use super::pid_file::PidFileError;
use bus::BindError;
use client::ClientError;
use config::ConfigErrors;
use logs::LogError;

/// The command has done its work.
pub const EXIT_OK: u8 = 0;
/// The answer is an error, or a result that says `ok: false` or `success: false`.
pub const EXIT_REFUSED: u8 = 1;
/// Wrong arguments (clap's own code too) or a wrong configuration.
pub const EXIT_USAGE: u8 = 2;
/// No bus, or the bus went away.
pub const EXIT_NO_BUS: u8 = 3;
/// The bus is there, but no answer came in time.
pub const EXIT_NO_ANSWER: u8 = 4;
/// This machine refused: a file, a port, a signal.
pub const EXIT_MACHINE: u8 = 5;

/// Why a subcommand failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CliError {
    /// The arguments contradict each other.
    #[error("{0}")]
    Usage(String),
    /// The configuration is wrong.
    #[error("{0}")]
    Config(#[from] ConfigErrors),
    /// The service, a tool or a plugin refused.
    #[error("{0}")]
    Refused(String),
    /// The answer cannot be read.
    #[error("the answer to {topic} cannot be read ({cause}); see it with --json")]
    Answer {
        /// The topic of the request.
        topic: &'static str,
        /// Why the answer cannot be read.
        cause: serde_json::Error,
    },
    /// No bus.
    #[error("{0}")]
    NoBus(Box<ClientError>),
    /// No answer came.
    #[error(
        "no ovos-tools service answered on {url} within {} s: start one with `ovos-tools serve`{advice}",
        wait.as_secs_f64()
    )]
    NoAnswer {
        /// The bus.
        url: String,
        /// How long the command waited.
        wait: Duration,
        /// Further advice.
        advice: String,
    },
    /// The service was restarted, so no answer can arrive any more.
    #[error("{0}")]
    Restarted(Box<ClientError>),
    /// It is not known whether the service has done what was asked, such as an emergency stop.
    #[error("{0}")]
    Unconfirmed(String),
    /// A file, a port, a signal.
    #[error("cannot {what}: {cause}")]
    Machine {
        /// The operation.
        what: String,
        /// Why it failed.
        cause: io::Error,
    },
    /// The port of a bus is taken, or the address does not belong to this machine.
    #[error("{0}")]
    Bind(#[from] BindError),
    /// Another service holds the state directory, or it cannot be written.
    #[error("{0}")]
    PidFile(#[from] PidFileError),
    /// The service cannot run, or cannot be started.
    #[error("{0}")]
    Service(String),
    /// Logging could not start.
    #[error("{0}")]
    Logs(#[from] LogError),
}

impl CliError {
    /// The exit code of the program.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Refused(_) | Self::Answer { .. } => EXIT_REFUSED,
            Self::Usage(_) | Self::Config(_) => EXIT_USAGE,
            Self::NoBus(_) => EXIT_NO_BUS,
            Self::NoAnswer { .. } | Self::Restarted(_) | Self::Unconfirmed(_) => EXIT_NO_ANSWER,
            Self::Machine { .. } | Self::Bind(_) | Self::PidFile(_) | Self::Logs(_) | Self::Service(_) => {
                EXIT_MACHINE
            }
        }
    }

    /// Creates the error for a failed write to the output.
    pub(super) fn output(cause: io::Error) -> Self {
        Self::Machine {
            what: "write the output".to_owned(),
            cause,
        }
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::NoAnswer { url, wait, .. } | ClientError::NoService { url, wait } => {
                Self::NoAnswer {
                    url: url.into(),
                    wait,
                    advice: String::new(),
                }
            }
            error @ ClientError::Restarted { .. } => Self::Restarted(Box::new(error)),
            ClientError::Refused(refusal) => Self::Refused(refusal.text),
            ClientError::Unreadable { topic, cause } => Self::Answer { topic, cause },
            error => Self::NoBus(Box::new(error)),
        }
    }
}
