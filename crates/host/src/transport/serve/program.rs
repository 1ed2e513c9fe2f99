//! `ovos-tools program-host`: prepares its process for a program of the configuration, and becomes that. Read
//! [`become_program`].

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::{Error, Result};
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, RawFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::fs::Mode;
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::{fail, put_on, stand_alone};

/// Where a program finds its data socket.
const DATA: RawFd = 3;
/// Where it finds its control socket.
const CONTROL: RawFd = 4;

/// What the program is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramTask {
    /// To serve: the data socket is stdin and the control socket stdout.
    Serve,
    /// To bring its hardware to rest: stdin is the configuration.
    SafeStop,
    /// To answer on its standard output. It ends with the service, whatever it does.
    Answer,
}

/// Becomes the program `words`, in a new working directory and confined as it says there. Returns only if that fails.
#[must_use]
pub fn become_program(
    folder: &Path,
    confine: Option<&str>,
    task: ProgramTask,
    words: &[OsString],
) -> ExitCode {
    let Some((command, arguments)) = words.split_first() else {
        return fail("there is no command");
    };
    let shown = Path::new(command).display();
    if let Err(error) = prepare(folder, confine, task, Path::new(command)) {
        return fail(&format!("{shown} was not started: {error}"));
    }
    let mut command = Command::new(command);
    command.args(arguments).current_dir(folder);
    if task == ProgramTask::SafeStop {
        command.arg("--safe-stop");
    }
    fail(&format!("{shown} cannot be executed: {}", command.exec()))
}

fn prepare(
    folder: &Path,
    confine: Option<&str>,
    task: ProgramTask,
    command: &Path,
) -> std::result::Result<(), String> {
    let at = |what: &'static str| move |error: Error| format!("{what}: {error}");
    stand_alone().map_err(at("let go of what it inherited"))?;
    rustix::process::umask(Mode::from_raw_mode(0o077));
    let mut private = DirBuilder::new();
    let made = private.recursive(true).mode(0o700).create(folder);
    made.map_err(at("make its working directory"))?;
    match task {
        ProgramTask::Serve => place_sockets().map_err(at("move its sockets"))?,
        ProgramTask::SafeStop => {}
        ProgramTask::Answer => set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| at("end with the service")(error.into()))?,
    }
    if task != ProgramTask::Answer {
        // What it prints goes where the service keeps its last lines.
        let moved = rustix::stdio::dup2_stdout(rustix::stdio::stderr());
        moved.map_err(|error| at("redirect its output")(error.into()))?;
    }
    for path in put_on(confine, command)? {
        _ = fail(&format!(
            "`confine` names {}, which does not exist; there is no access to it, also when it appears, until a reload",
            path.display()
        ));
    }
    Ok(())
}

/// Moves the sockets to where a program expects them, and puts `/dev/null` in the place of stdin.
fn place_sockets() -> Result<()> {
    keep(rustix::stdio::stdin(), DATA)?;
    keep(rustix::stdio::stdout(), CONTROL)?;
    let null = std::fs::File::open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdin(&null)?)
}

/// Puts a socket at a number that is free, for the program that this process becomes.
fn keep(socket: impl AsFd, at: RawFd) -> Result<()> {
    // The lowest free number from there on: nothing else is open.
    let placed = fcntl_dupfd_cloexec(socket, at)?;
    if placed.as_raw_fd() != at {
        return Err(Error::other(format!("descriptor {at} is taken")));
    }
    fcntl_setfd(&placed, FdFlags::empty())?;
    // It stays open.
    _ = placed.into_raw_fd();
    Ok(())
}
