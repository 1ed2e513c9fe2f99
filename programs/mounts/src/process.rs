//! A server that is a process: its start, its last lines and its end. Read [`ServerProcess::start`].

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use config::MountConfig;
use parking_lot::Mutex;
use program::level;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::reporter::Reporter;

/// The variables that a server inherits from this program, in addition to its own `env`. Others may contain tokens.
const ALLOWED: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LD_LIBRARY_PATH",
    "LOGNAME",
    "PATH",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

/// How many of its last lines are quoted when a server ends.
const LAST_LINES: usize = 5;

/// How much of a line on the server's stderr is read at once, in bytes.
const MAX_LINE: u64 = 4096;

/// How long a server may take to end after its input is closed.
const EOF_GRACE: Duration = Duration::from_secs(1);

/// How long the keeper may take to end the server after that.
const KEEPER_GRACE: Duration = Duration::from_secs(4);

/// A server and the keeper that ends it.
pub(crate) struct ServerProcess {
    keeper: Child,
    group: Option<Pid>,
    last: Arc<Mutex<VecDeque<String>>>,
    listens: JoinHandle<()>,
}

impl ServerProcess {
    /// Starts the server, with `command` instead of the configured one. Also returns its output and its input.
    ///
    /// # Errors
    /// The server cannot be started.
    pub(crate) fn start(
        mount: &MountConfig,
        command: &Path,
        reporter: &Reporter,
    ) -> Result<(Self, ChildStdout, ChildStdin), String> {
        // The file of the running program, even if it was replaced on disk.
        let keeper = PathBuf::from("/proc/self/exe");
        let allowed = std::env::vars_os().filter(|(name, _)| is_allowed(name));
        let allowed: Vec<(OsString, OsString)> = allowed.collect();
        let mut starts = Command::new(keeper);
        starts
            .args(["--keep", &std::process::id().to_string(), "--"])
            .arg(command)
            .args(&mount.args)
            .env_clear()
            .envs(allowed)
            .envs(&mount.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(folder) = &mount.cwd {
            starts.current_dir(folder);
        }
        let mut keeper = starts.spawn().map_err(|error| match &mount.cwd {
            Some(folder) => format!("it cannot be started in {}: {error}", folder.display()),
            None => format!("it cannot be started: {error}"),
        })?;
        let group = keeper
            .id()
            .and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let pipes = (keeper.stdin.take(), keeper.stdout.take(), keeper.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err("it has no pipes".to_owned());
        };
        let last = Arc::new(Mutex::new(VecDeque::new()));
        let listens = tokio::spawn(listen(errors, last.clone(), reporter.clone()));
        let process = Self {
            keeper,
            group,
            last,
            listens,
        };
        Ok((process, output, input))
    }

    /// Waits for the end of the process, and describes how it ended. It may be called again. Cancel-safe.
    pub(crate) async fn ended(&mut self) -> String {
        let status = match self.keeper.wait().await {
            Ok(status) => match status.code() {
                Some(127) => "could not be started, or ended with status 127".to_owned(),
                Some(code) if code > 128 => format!("was ended by signal {}", code - 128),
                Some(code) => format!("ended with status {code}"),
                None => format!("was ended: {status}"),
            },
            Err(error) => format!("cannot be waited for: {error}"),
        };
        // The last lines may not have been read yet. A task that has finished must not be polled again.
        if !self.listens.is_finished() {
            _ = tokio::time::timeout(Duration::from_millis(200), &mut self.listens).await;
        }
        format!("the server {status}{}", self.last_words())
    }

    /// Describes the last lines on stderr.
    pub(crate) fn last_words(&self) -> String {
        let last = self.last.lock();
        if last.is_empty() {
            return String::new();
        }
        let lines: Vec<&str> = last.iter().map(String::as_str).collect();
        format!("; its last lines: {}", lines.join(" | "))
    }

    /// Ends the process and its descendants. Its input has to be closed before.
    pub(crate) async fn end(mut self) {
        if tokio::time::timeout(EOF_GRACE, self.keeper.wait()).await.is_err() {
            if let Some(pid) = self.group {
                // The process may have ended just now.
                _ = kill_process(pid, Signal::TERM);
            }
            _ = tokio::time::timeout(KEEPER_GRACE, self.keeper.wait()).await;
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The keeper has ended all processes, or hangs.
        if let Some(group) = self.group {
            let runs = !matches!(self.keeper.try_wait(), Ok(Some(_)));
            let signal = if runs { Signal::TERM } else { Signal::KILL };
            _ = kill_process_group(group, signal);
        }
        self.listens.abort();
    }
}

fn is_allowed(name: &OsString) -> bool {
    name.to_str()
        .is_some_and(|name| ALLOWED.contains(&name) || name.starts_with("LC_"))
}

/// Passes on the lines of the server's stderr. A long line is split, but never inside a secret.
async fn listen(errors: ChildStderr, last: Arc<Mutex<VecDeque<String>>>, reporter: Reporter) {
    let mut errors = BufReader::new(errors);
    let (mut line, mut ends) = (Vec::new(), false);
    while !ends {
        match (&mut errors).take(MAX_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => ends = true,
            Ok(_) => {}
        }
        let read = String::from_utf8_lossy(&line).into_owned();
        let is_whole = ends || line.ends_with(b"\n");
        let (complete, rest) = match is_whole {
            true => (read.as_str(), ""),
            false => reporter.secrets().parted(&read),
        };
        line = rest.as_bytes().to_vec();
        let text = reporter.secrets().hide(complete);
        let text = text.trim_end();
        if text.is_empty() {
            continue;
        }
        reporter.log(level::INFO, "server", text);
        let mut last = last.lock();
        last.push_back(text.to_owned());
        if last.len() > LAST_LINES {
            last.pop_front();
        }
    }
}
