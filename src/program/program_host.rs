//! `ovos-tools program-host`: the process that the service starts and that then becomes a program of the configuration.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use host::{ProgramTask, become_program};

/// Arguments of `program-host`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools program-host --folder /run/user/1000/work -- /usr/bin/python3 -m ovos_tools_program")]
pub(crate) struct Arguments {
    /// The working directory, created if it is missing
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,
    /// What the process may reach, as JSON: the entry's `confine`
    #[arg(long, value_name = "JSON")]
    confine: Option<String>,
    /// Ask the program to bring its hardware to rest: it reads its configuration from stdin and gets no sockets
    #[arg(long)]
    safe_stop: bool,
    /// Have the program answer on its standard output: it gets no sockets, and is killed with the service
    #[arg(long, conflicts_with = "safe_stop")]
    answers: bool,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let Arguments {
        folder,
        confine,
        safe_stop,
        answers,
        command,
    } = arguments;
    let task = match (safe_stop, answers) {
        (true, _) => ProgramTask::SafeStop,
        (_, true) => ProgramTask::Answer,
        _ => ProgramTask::Serve,
    };
    become_program(folder, confine.as_deref(), task, command)
}
