//! `ovos-tools toolbox-host`: a process that the service starts for a plugin, so that a broken plugin affects only that process.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `toolbox-host`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools toolbox-host --probe ./libhello.so")]
pub struct Arguments {
    /// What it does.
    #[command(flatten)]
    pub task: Task,
    /// What the process may reach, as JSON: the toolbox's `confine`
    #[arg(long, value_name = "JSON")]
    pub confine: Option<String>,
}

/// Exactly one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Task {
    /// Load this file, say on stdout what is in it, and end
    #[arg(long, value_name = "FILE")]
    pub probe: Option<PathBuf>,
    /// Host this file for a service whose data and control sockets are stdin and stdout
    #[arg(long, value_name = "FILE")]
    pub serve: Option<PathBuf>,
    /// Bring the hardware of this file's toolbox to rest, whose configuration comes through stdin, and end
    #[arg(long, value_name = "FILE")]
    pub safe_stop: Option<PathBuf>,
}
