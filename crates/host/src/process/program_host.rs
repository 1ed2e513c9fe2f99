//! `ovos-tools program-host`: prepares its process for a program of the configuration, and executes that program. Read
//! [`become_program`].

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::{Error, Result};
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, RawFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Mode;
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, kill_current_process_group, kill_process, pidfd_open,
    set_parent_process_death_signal,
};

use program::{CONTROL, DATA, stand_alone};

use crate::process::confine;

/// The task of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramTask {
    /// Serves its toolboxes: the data socket is stdin and the control socket stdout.
    Serve,
    /// Brings its hardware to rest: stdin is the configuration.
    SafeStop,
    /// Answers on its standard output. Whatever it does, it and its process group end with the service.
    Answer,
}

/// Executes the program `words` in this process, in a new working directory and confined as `confine` says. Returns
/// only if that fails, or when a program that answers has ended.
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
    let program = Path::new(command).display();
    if let Err(error) = prepare(folder, confine, task, Path::new(command)) {
        return fail(&format!("{program} was not started: {error}"));
    }
    let mut command = Command::new(command);
    command.args(arguments).current_dir(folder);
    if task == ProgramTask::SafeStop {
        command.arg("--safe-stop");
    }
    let error = match task {
        ProgramTask::Answer => match answer(&mut command) {
            Ok(status) => return end_as(status),
            Err(error) => error,
        },
        ProgramTask::Serve | ProgramTask::SafeStop => command.exec(),
    };
    fail(&format!("{program} cannot be executed: {error}"))
}

/// Runs a program to its end. If the service ends before it, kills the whole process group, including this process:
/// nothing else would end the processes that the program has forked.
fn answer(command: &mut Command) -> Result<ExitStatus> {
    let of_service = getppid().ok_or_else(|| Error::other("the service is gone"))?;
    let service = pidfd_open(of_service, PidfdFlags::empty())?;
    // This signal would end only this process, not the program.
    set_parent_process_death_signal(None)?;
    let mut child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let program = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())).transpose()?;
    let program = program.ok_or_else(|| Error::other("it has no id"))?;
    loop {
        let mut ends = [
            PollFd::new(&service, PollFlags::IN),
            PollFd::new(&program, PollFlags::IN),
        ];
        if let Err(error) = poll(&mut ends, None)
            && error != Errno::INTR
        {
            _ = kill_current_process_group(Signal::KILL);
            return Err(error.into());
        }
        let [of_service, of_program] = ends.map(|end| !end.revents().is_empty());
        if of_service {
            _ = kill_current_process_group(Signal::KILL);
        }
        if of_program {
            return child.wait();
        }
    }
}

/// Ends this process with the exit status of another.
fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
        _ = kill_process(getpid(), signal);
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

fn prepare(
    folder: &Path,
    confine: Option<&str>,
    task: ProgramTask,
    command: &Path,
) -> std::result::Result<(), String> {
    let at = |what: &'static str| move |error: Error| format!("cannot {what}: {error}");
    stand_alone().map_err(at("close the file descriptors that it inherited"))?;
    rustix::process::umask(Mode::from_raw_mode(0o077));
    let mut private = DirBuilder::new();
    let created = private.recursive(true).mode(0o700).create(folder);
    created.map_err(at("create its working directory"))?;
    match task {
        ProgramTask::Serve => place_sockets().map_err(at("move its sockets"))?,
        ProgramTask::SafeStop | ProgramTask::Answer => {}
    }
    if task != ProgramTask::Answer {
        // The program's output goes to stderr, whose last lines the service keeps.
        let moved = rustix::stdio::dup2_stdout(rustix::stdio::stderr());
        moved.map_err(|error| at("redirect its output")(error.into()))?;
    }
    for path in confine::enter(confine, command)? {
        _ = fail(&format!(
            "`confine` names {}, which does not exist; if it appears later, a reload gives access to it",
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

/// Moves a socket to a free descriptor for the program that this process executes.
fn keep(socket: impl AsFd, at: RawFd) -> Result<()> {
    // Returns the lowest free number from `at` on, which is `at`, because nothing else is open.
    let placed = fcntl_dupfd_cloexec(socket, at)?;
    if placed.as_raw_fd() != at {
        return Err(Error::other(format!("descriptor {at} is taken")));
    }
    fcntl_setfd(&placed, FdFlags::empty())?;
    // The descriptor stays open for the program.
    _ = placed.into_raw_fd();
    Ok(())
}

#[expect(clippy::print_stderr, reason = "the service reads it there")]
fn fail(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::FAILURE
}
