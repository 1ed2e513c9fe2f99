//! Why the service cannot start.

use bus::BindError;
use config::ConfigErrors;

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The embedded bus cannot listen.
    #[error(transparent)]
    Bus(#[from] BindError),
    /// The handler of SIGUSR1 cannot be installed.
    #[error("cannot catch signals: {0}")]
    Signal(std::io::Error),
    /// The thread that serves stops cannot be started.
    #[error("cannot start the thread for stops: {0}")]
    Stops(std::io::Error),
    /// The thread for the state files cannot be started, or reading them failed.
    #[error("cannot set up the state folder: {0}")]
    State(std::io::Error),
    /// The toolbox host cannot be set up.
    #[error("cannot set up the toolboxes: {0}")]
    Toolboxes(String),
}
