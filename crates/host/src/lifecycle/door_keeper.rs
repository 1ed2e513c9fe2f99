//! Keeps a door running: a program of our own, which is a bus client and gets no sockets. Read [`DoorKeeper::keep`].

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::lifecycle::health::{FIRST_RESTART, Health, MAX_RESTART};
use crate::process::started_process::StartedProcess;

/// How long a door has to end its calls and to leave the bus.
const END: Duration = Duration::from_secs(2);

/// A door that the service starts.
#[derive(Debug)]
pub struct DoorKeeper {
    /// Its name, such as `mcp`.
    pub name: &'static str,
    program: PathBuf,
    arguments: Vec<OsString>,
    /// After so many ends within a minute it is not started again; 0 means no limit.
    max_failures: u32,
    report: Mutex<DoorReport>,
}

/// What became of a door.
#[derive(Clone, Debug, Default)]
pub struct DoorReport {
    /// Its process, while it runs.
    pub pid: Option<u32>,
    /// How often it was started again.
    pub restarts: u64,
    /// Why it ended the last time.
    pub reason: Option<String>,
}

impl DoorKeeper {
    /// A door with this program and these arguments.
    #[must_use]
    pub fn new(name: &'static str, program: PathBuf, arguments: Vec<OsString>, max_failures: u32) -> Self {
        Self {
            name,
            program,
            arguments,
            max_failures,
            report: Mutex::default(),
        }
    }

    /// What became of it.
    #[must_use]
    pub fn report(&self) -> DoorReport {
        self.report.lock().clone()
    }

    /// Starts the door, and starts it again when it ends, until `stop` is cancelled or it ended too often. It has ended when
    /// this returns.
    ///
    /// # Cancel safety
    /// The door is killed.
    pub async fn keep(self: Arc<Self>, stop: CancellationToken) {
        let mut health = Health::default();
        loop {
            let reason = match self.run(&stop).await {
                Some(reason) => reason,
                None => return,
            };
            self.report.lock().pid = None;
            let door = self.name;
            tracing::error!(door, reason, "the door ended");
            let too_often = health.failed(&reason, Instant::now(), self.max_failures);
            self.report.lock().reason = Some(reason);
            if too_often {
                let max = self.max_failures;
                tracing::error!(
                    door,
                    "the door ended {max} times within a minute (service.max_failures) and is not started again: restart the service \
                     when the cause is mended"
                );
                return;
            }
            tokio::select! {
                () = sleep(health.wait(FIRST_RESTART, MAX_RESTART)) => self.report.lock().restarts += 1,
                () = stop.cancelled() => return,
            }
        }
    }

    /// Runs it once and returns why it ended; `None` if that was asked for.
    async fn run(&self, stop: &CancellationToken) -> Option<String> {
        let mut process = match StartedProcess::start(self.command()).await {
            Ok(process) => process,
            Err(error) => return Some(format!("cannot start {}: {error}", self.program.display())),
        };
        let pid = process.child.id();
        self.report.lock().pid = Some(pid);
        tracing::info!(door = self.name, pid, "the door is started");
        tokio::select! {
            ended = process.end(Duration::MAX) => {
                Some(ended.map_or_else(String::new, |status| status.to_string()))
            }
            () = stop.cancelled() => {
                let group = i32::try_from(pid).ok().and_then(Pid::from_raw);
                let signalled = group.map_or(Err(io::ErrorKind::NotFound.into()), |group| {
                    kill_process_group(group, Signal::TERM).map_err(io::Error::from)
                });
                if signalled.is_err() || process.end(END).await.is_none() {
                    tracing::warn!(door = self.name, "the door did not end and is killed");
                }
                None
            }
        }
    }

    /// It gets the service's whole environment, because its configuration names variables that hold keys. A Ctrl-C on the terminal
    /// does not reach it: the service ends it.
    fn command(&self) -> Command {
        use std::os::unix::process::CommandExt as _;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .arg("--started-by")
            .arg(std::process::id().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .process_group(0);
        command
    }
}
