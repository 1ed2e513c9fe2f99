//! The process between this program and a server. It ends the server and all processes that the server has started: when it is
//! asked to, when the server ends, and when this program is gone.
//!
//! Launchers (`npx`, `uvx`, shells) start the server as a process of its own, which a signal to the launcher does not reach. The
//! keeper adopts every descendant that its parent leaves behind, so it finds them all. Read [`keep`].

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_child_subreaper,
    set_parent_process_death_signal, wait,
};
use signals::Ending;
use tokio::process::Command;

/// How long a server has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);

/// The exit code of a shell that cannot start a command.
const NOT_STARTED: u8 = 127;

/// Runs a command until it ends, or until this process is asked to end it. `parent` is the process that started this one.
pub(crate) fn keep(parent: &str, command: &[OsString]) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let status = match runtime {
        Ok(runtime) => runtime.block_on(run(parent, command)),
        Err(error) => Err(format!("no runtime: {error}")),
    };
    end_descendants();
    match status {
        Ok(status) => ExitCode::from(code(status)),
        Err(error) => {
            complain(&error);
            ExitCode::from(NOT_STARTED)
        }
    }
}

async fn run(parent: &str, command: &[OsString]) -> Result<ExitStatus, String> {
    let trouble = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    // The handler is installed before the kernel is asked to send the signal.
    let mut ending = Ending::listen().map_err(|error| trouble("signals", &error))?;
    set_parent_process_death_signal(Some(Signal::TERM)).map_err(|error| trouble("PDEATHSIG", &error))?;
    set_child_subreaper(Some(getpid())).map_err(|error| trouble("subreaper", &error))?;
    let alive = getppid().is_some_and(|pid| pid.as_raw_nonzero().to_string() == parent);
    if !alive {
        return Err("the program that started this one is gone".to_owned());
    }
    let [program, arguments @ ..] = command else {
        return Err("no command".to_owned());
    };
    let text = program.display();
    let child = Command::new(program).args(arguments).spawn();
    let mut child = child.map_err(|error| format!("`{text}` cannot be started: {error}"))?;
    // The server's pipes must report their end to the other side, so this process closes its own copies.
    let null = fs::File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(|error| trouble("/dev/null", &error))?;
    rustix::stdio::dup2_stdin(&null).map_err(|error| trouble("stdin", &error))?;
    rustix::stdio::dup2_stdout(&null).map_err(|error| trouble("stdout", &error))?;
    let ended = |error: std::io::Error| trouble("wait", &error);
    tokio::select! {
        status = child.wait() => return status.map_err(ended),
        _ = ending.next() => {}
    }
    if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
        // The process may have ended just now.
        _ = kill_process(pid, Signal::TERM);
    }
    match tokio::time::timeout(GRACE, child.wait()).await {
        Ok(status) => status.map_err(ended),
        Err(_) => {
            child.kill().await.map_err(ended)?;
            child.wait().await.map_err(ended)
        }
    }
}

/// Kills all processes that the server has left behind, and those that these leave behind in turn.
fn end_descendants() {
    // Each round ends at least one process. A server that forks faster than this is left to the kernel's limits.
    for _ in 0..10_000 {
        let children = children();
        if children.is_empty() {
            return;
        }
        for pid in children {
            _ = kill_process(pid, Signal::KILL);
        }
        // Returns as soon as one of the children has ended.
        if wait(WaitOptions::empty()).is_err() {
            return;
        }
    }
}

/// Returns the children of this process, including adopted ones.
fn children() -> Vec<Pid> {
    let tasks = fs::read_dir("/proc/self/task");
    let tasks = tasks.into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let pids: Vec<Pid> = lists
        .flat_map(|list| {
            let pids = list.split_whitespace().map(str::parse);
            pids.flatten().filter_map(Pid::from_raw).collect::<Vec<_>>()
        })
        .collect();
    pids
}

/// Returns the exit code as a shell does.
fn code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| signal + 128);
    let code = status.code().or(signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

#[allow(
    clippy::print_stderr,
    reason = "it is the server's, which the mounts program reads"
)]
fn complain(error: &str) {
    eprintln!("{error}");
}
