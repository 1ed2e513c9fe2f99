//! `ovos-tools toolbox-host`: a process that the service starts for a plugin, so that a broken plugin affects only that process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::program::Sockets;
use clap::Args;

/// Arguments of `toolbox-host`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools toolbox-host --safe-stop ./libhello.so </dev/null

A toolbox starts itself with --role to do a part of its work in another process.")]
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
    /// Like --serve, but only inspect the file: the process may not change files or open connections
    #[arg(long, value_name = "FILE")]
    greet: Option<PathBuf>,
    /// Host this file for a service whose data and control sockets are stdin and stdout
    #[arg(long, value_name = "FILE")]
    serve: Option<PathBuf>,
    /// Bring the hardware of this file's toolbox to rest, and exit; the toolbox's configuration is read from stdin
    #[arg(long, value_name = "FILE")]
    safe_stop: Option<PathBuf>,
    /// Run the role NAME of this file's toolbox (started by the toolbox); the socket to the toolbox is stdin
    #[arg(long, num_args = 2, value_names = ["NAME", "FILE"])]
    role: Option<Vec<OsString>>,
}

/// Does the task of the process.
pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let Task {
        greet,
        serve,
        safe_stop,
        role,
    } = &arguments.task;
    let confine = arguments.confine.as_deref();
    let done = if let Some(file) = greet {
        self::serve(file, || {
            host::confine_greeting();
            Ok(Vec::new())
        })
    } else if let Some(file) = serve {
        self::serve(file, || host::enter(confine, file))
    } else if let Some(file) = safe_stop {
        host::enter(confine, file)
            .map_err(|error| format!("safe_stop was not called: {error}"))
            .and_then(|_| plugin::safe_stop(file))
    } else if let Some([name, file]) = role.as_deref() {
        play_role(&name.to_string_lossy(), Path::new(file))
    } else {
        // clap's group requires one of them.
        Err("there is no task".to_owned())
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn serve(file: &Path, confine: impl FnOnce() -> Result<Vec<PathBuf>, String>) -> Result<(), String> {
    let begun = ::program::stand_alone().and_then(|()| Sockets::take_stdio());
    begun
        .and_then(|sockets| plugin::serve(file, sockets, confine()))
        .map_err(|error| format!("host {}: {error}", file.display()))
}

/// The process has the confinement of the toolbox, which it inherits.
fn play_role(name: &str, file: &Path) -> Result<(), String> {
    let begun = ::program::stand_alone().and_then(|()| ::program::take_leash());
    begun
        .map_err(|error| error.to_string())
        .and_then(|leash| plugin::play_role(file, name, leash))
        .map_err(|error| format!("{name} of {}: {error}", file.display()))
}

#[expect(clippy::print_stderr, reason = "the service reads it there")]
fn fail(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::FAILURE
}
