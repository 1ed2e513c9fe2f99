//! `ovos-tools toolbox-host`: what the service starts beside itself, so that a broken plugin breaks a child only.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

/// Arguments of `toolbox-host`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools toolbox-host --probe ./libhello.so")]
pub struct Arguments {
    #[command(flatten)]
    task: Task,
}

/// Exactly one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Task {
    /// Load this file, say on stdout what is in it, and end
    #[arg(long, value_name = "FILE")]
    probe: Option<PathBuf>,
    /// Load and open this file, say on stdout everything that is wrong with it, and end
    #[arg(long, value_name = "FILE")]
    inspect: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let Task { probe, inspect } = &arguments.task;
    match (probe, inspect) {
        (Some(file), _) => crate::plugin::probe::child_main(file),
        (None, Some(file)) => crate::plugin::inspect::child_main(file),
        // clap's group asks for one of them.
        (None, None) => ExitCode::FAILURE,
    }
}
