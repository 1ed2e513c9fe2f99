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
    /// Load this file, say on stdout what is in it, and end
    #[arg(long, value_name = "FILE")]
    probe: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    crate::plugin::probe::child_main(&arguments.probe)
}
