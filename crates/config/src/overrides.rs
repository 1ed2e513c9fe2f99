//! What the command line says instead of the files.

use std::path::PathBuf;

use super::embedded_bus::EmbeddedBus;

/// Options of the command line, which override the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--config FILE`: replaces the user's own mycroft.conf, on top of all other layers. The operator names it at
    /// the start, so the protections against user files do not apply to it. The file must exist.
    pub config: Option<PathBuf>,
    /// `--bus URL`: overrides `websocket` {host, port, route, ssl}. A URL without a path gets the configured route.
    pub bus: Option<String>,
    /// `--plugins DIR`, repeatable: overrides `plugins_dir`.
    pub plugins: Vec<PathBuf>,
    /// `--embedded-bus never|auto|always`: overrides `embedded_bus`.
    pub embedded_bus: Option<EmbeddedBus>,
    /// `--simulators`: toolboxes of the packaged folders that drive a simulator by default are loaded without being asked for.
    pub simulators: bool,
    /// `--console`: overrides `doors.console.start`.
    pub console: bool,
    /// Whether the copy of its last good content stands in for a `config` that cannot be read, as it does for the other files.
    pub given_may_be_copy: bool,
}
