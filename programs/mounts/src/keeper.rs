//! The process between this program and a server. It ends the server and all processes that the server has started: when it is
//! asked to, when the server ends, and when this program is gone.
//!
//! Launchers (`npx`, `uvx`, shells) start the server as a process of its own, which a signal to the launcher does not reach. The
//! keeper adopts every descendant that its parent leaves behind, so it finds them all, and gives each the same time to end. Read
//! [`keep`].

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, getpgrp, getpid, getppid, kill_process, kill_process_group,
    set_child_subreaper, set_parent_process_death_signal, wait,
};
use signals::Ending;
use tokio::process::Command;

/// How long a server has to end after SIGTERM, and what a launcher has left behind after that.
const GRACE: Duration = Duration::from_secs(1);

/// How often is looked whether a process has ended.
const LOOK: Duration = Duration::from_millis(10);

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
            child.start_kill().map_err(ended)?;
            child.wait().await.map_err(ended)
        }
    }
}

/// Ends all processes that the server has left behind, and those that these leave behind in turn: asks each to end, and kills what is
/// left after [`GRACE`].
fn end_descendants() {
    let until = Instant::now() + GRACE;
    let mut asked: Vec<Pid> = Vec::new();
    loop {
        for pid in children() {
            if !asked.contains(&pid) {
                asked.push(pid);
                _ = kill_process(pid, Signal::TERM);
            }
        }
        match wait(WaitOptions::NOHANG) {
            // It may have left children behind.
            Ok(Some(_)) => {}
            Ok(None) if Instant::now() < until => thread::sleep(LOOK),
            Ok(None) => break,
            // There are no children.
            Err(_) => return,
        }
    }
    // Each round ends at least one process. A server that forks faster than this is left to the kernel's limits.
    for _ in 0..10_000 {
        let children = children();
        if children.is_empty() {
            break;
        }
        for pid in children {
            _ = kill_process(pid, Signal::KILL);
        }
        // Returns as soon as one of the children has ended.
        if wait(WaitOptions::empty()).is_err() {
            return;
        }
    }
    // There are children, and the kernel does not list them (`/proc` is hidden, or it lacks CONFIG_PROC_CHILDREN).
    if matches!(wait(WaitOptions::NOHANG), Ok(None)) && getpgrp() == getpid() {
        complain("the processes that the server left behind are not listed in /proc: their group is killed");
        // This process is in it, too.
        _ = kill_process_group(getpid(), Signal::KILL);
    }
}

/// Returns the children of this process, including adopted ones.
fn children() -> Vec<Pid> {
    let tasks = fs::read_dir("/proc/self/task");
    let tasks = tasks.into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            let pids = list.split_whitespace().map(str::parse);
            pids.flatten().filter_map(Pid::from_raw).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the exit code as a shell does.
fn code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| signal + 128);
    let code = status.code().or(signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

#[allow(
    clippy::print_stderr,
    reason = "the mounts program reads the server's stderr, which this process shares"
)]
fn complain(error: &str) {
    eprintln!("{error}");
}
