//! A process that is started to be heard once. Read [`Started`].

use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpid};
use tokio::time::{sleep, timeout};

/// A process that is ended with everything in its process group, and reaped, when this is dropped.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) child: Child,
}

impl Started {
    pub(crate) fn new(child: Child) -> Self {
        Self { child }
    }

    /// How it ended by itself, if it does within `limit`.
    pub(crate) async fn end(&mut self, limit: Duration) -> Option<ExitStatus> {
        /// How often it is looked at.
        const LOOK: Duration = Duration::from_millis(10);
        let ended = async {
            loop {
                if let Ok(Some(status)) = self.child.try_wait() {
                    return status;
                }
                sleep(LOOK).await;
            }
        };
        timeout(limit, ended).await.ok()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            // Also when the process itself has ended: it may have left others behind.
            _ = kill_process_group(group, Signal::KILL);
        }
        // By itself, too: it may have left its group.
        _ = self.child.kill();
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            // Reaped whenever the kernel lets go of it, on a thread that may wait.
            let pid = self.child.id();
            let reaper = thread::Builder::new().name("tb-reaper".to_owned());
            if reaper.spawn(move || reap(pid)).is_err() {
                tracing::debug!(pid, "a program that was ended is not reaped");
            }
        }
    }
}

/// Waits for the end of a child that was killed.
fn reap(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        _ = waitpid(Some(pid), WaitOptions::empty());
    }
}
