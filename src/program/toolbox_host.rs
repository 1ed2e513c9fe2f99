//! `ovos-tools toolbox-host`: a process that the service starts for a plugin, so that a broken plugin affects only that process.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

/// Arguments of `toolbox-host`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools toolbox-host --probe ./libhello.so")]
pub(crate) struct Arguments {
    #[command(flatten)]
    task: Task,
    /// What the process may reach, as JSON: the toolbox's `confine`
    #[arg(long, value_name = "JSON")]
    confine: Option<String>,
}

/// Exactly one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Task {
    /// Load this file, say on stdout what is in it, and end
    #[arg(long, value_name = "FILE")]
    probe: Option<PathBuf>,
    /// Host this file for a service whose data and control sockets are stdin and stdout
    #[arg(long, value_name = "FILE")]
    serve: Option<PathBuf>,
    /// Bring the hardware of this file's toolbox to rest, whose configuration comes through stdin, and end
    #[arg(long, value_name = "FILE")]
    safe_stop: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let Task {
        probe,
        serve,
        safe_stop,
    } = &arguments.task;
    let confine = arguments.confine.as_deref();
    if let Some(file) = probe {
        host::probe::child_main(file)
    } else if let Some(file) = serve {
        host::serve::child_main(file, confine)
    } else if let Some(file) = safe_stop {
        host::serve::safe_stop_main(file, confine)
    } else {
        // clap's group requires one of them.
        ExitCode::FAILURE
    }
}
