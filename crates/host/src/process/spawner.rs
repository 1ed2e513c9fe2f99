//! Starts the processes of toolboxes, from one thread that lives as long as the service.
//!
//! The kernel ends a child with PDEATHSIG when the *thread* that started it ends (measured), and the threads of a
//! runtime come and go, so they must not start a child that has to live on. Also decides what such a process gets: its
//! arguments and its environment, nothing else. Read [`spawn`] and [`Program`].

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::process::{confine, descriptors};
use section::Confine;

/// The variables of the service that its toolboxes get, beside those in the configuration's `env`: programs need them
/// to find their files and to use the user's language. Any other variable may contain a secret.
const ALLOWED: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LD_LIBRARY_PATH",
    "LOGNAME",
    "PATH",
    "RUST_BACKTRACE",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

/// Tells a toolbox that the kernel confines its process to what its section allows. It is not set for a `confine` in
/// the section, which may allow anything.
const CONFINED: &str = "OVOS_TOOLBOX_CONFINED";

/// The program that hosts toolboxes, and the environment of its processes.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: OsString,
    /// Variables added to those of the service that are allowed.
    pub(crate) env: BTreeMap<String, String>,
    /// What the processes may access; `None`: everything that the service may access.
    pub(crate) confine: Option<Confine>,
}

impl Program {
    /// A subcommand of this program, in a process group of its own: a Ctrl-C on the terminal must reach only the
    /// service, which brings its toolboxes to rest before it ends them.
    pub(crate) fn command<A: AsRef<OsStr>>(
        &self,
        subcommand: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = Command::new(&self.path);
        command.arg(subcommand);
        if let Some(confine) = &self.confine {
            command.arg("--confine").arg(confine::argument(confine));
        }
        command
            .args(arguments)
            .env_clear()
            .envs(allowed_environment())
            .envs(&self.env)
            .env_remove(CONFINED)
            .process_group(0);
        if let Some(default) = self.confine.as_ref().and_then(|confine| confine.default.as_ref()) {
            command.env(CONFINED, "1").env("TMPDIR", &default.temp);
        }
        command
    }
}

/// The part of the service's environment that a process with foreign code gets.
pub(crate) fn allowed_environment() -> impl Iterator<Item = (OsString, OsString)> {
    let is_allowed = |name: &OsStr| {
        name.to_str()
            .is_some_and(|name| ALLOWED.contains(&name) || name.starts_with("LC_"))
    };
    std::env::vars_os().filter(move |(name, _)| is_allowed(name))
}

struct Job {
    command: Command,
    on_start: Box<dyn FnOnce(io::Result<Child>) + Send>,
}

/// Starts a process. `on_start` gets the result on the spawner's thread and must return at once.
pub(crate) fn spawn(command: Command, on_start: impl FnOnce(io::Result<Child>) + Send + 'static) {
    /// `None` if the thread cannot be started. The queue is not bounded: each job takes a millisecond, and there is
    /// one for each toolbox that is opened or brought to rest.
    static SPAWNER: OnceLock<Option<Sender<Job>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, queue) = channel::<Job>();
        let thread = thread::Builder::new()
            .name("tb-spawner".to_owned())
            .spawn(move || {
                for mut job in queue {
                    let spawned = job.command.spawn();
                    if let Ok(child) = &spawned {
                        descriptors::give_back(child.id());
                    }
                    (job.on_start)(spawned);
                }
            });
        thread.ok().map(|_| jobs)
    });
    let job = Job {
        command,
        on_start: Box::new(on_start),
    };
    let refused = match spawner {
        Some(jobs) => jobs.send(job).err().map(|refused| refused.0),
        None => Some(job),
    };
    if let Some(job) = refused {
        (job.on_start)(Err(io::Error::other(
            "the thread that starts processes has ended or could not be started",
        )));
    }
}

/// As [`spawn`], and waits until the process is started.
pub(crate) fn spawn_now(command: Command) -> io::Result<Child> {
    let (sender, receiver) = channel();
    spawn(command, move |spawned| drop(sender.send(spawned)));
    receiver
        .recv()
        .unwrap_or_else(|_| Err(io::Error::other("the thread that starts processes ended")))
}

pub(crate) fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipe would block its writer after 64 KiB.
    #[test]
    fn a_text_longer_than_a_pipe_reaches_a_process_that_reads_late() {
        let text = "x".repeat(1 << 20);
        let mut command = Command::new("sh");
        command
            .args(["-c", "sleep 0.1; wc -c"])
            .stdin(program::input(&text).unwrap());
        let output = command.output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            "1048576",
            "{output:?}"
        );
    }
}
