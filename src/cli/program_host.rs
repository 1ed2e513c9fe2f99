//! `ovos-tools program-host`: what the service starts, to become a program of the configuration.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

/// Arguments of `program-host`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools program-host --folder /run/user/1000/work -- /usr/bin/python3 -m ovos_tools_program")]
pub struct Arguments {
    /// The working directory, which is made
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,
    /// What the process may reach, as JSON: the entry's `confine`
    #[arg(long, value_name = "JSON")]
    confine: Option<String>,
    /// Have the program bring its hardware to rest: its configuration comes through stdin, and there are no sockets
    #[arg(long)]
    safe_stop: bool,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let Arguments {
        folder,
        confine,
        safe_stop,
        command,
    } = arguments;
    host::serve::become_program(folder, confine.as_deref(), *safe_stop, command)
}
