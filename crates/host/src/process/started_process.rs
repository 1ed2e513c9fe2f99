//! A process that ends when its owner drops it. Read [`StartedProcess`].

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use scopeguard::ScopeGuard;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::process::spawner;

/// A process that is ended with everything in its process group, and reaped, when this is dropped.
#[derive(Debug)]
pub(crate) struct StartedProcess {
    pub(crate) child: ScopeGuard<Child, fn(Child)>,
}

impl StartedProcess {
    /// Starts a process.
    ///
    /// # Errors
    /// The process cannot be started.
    ///
    /// # Cancel safety
    /// The process is ended.
    pub(crate) async fn start(command: Command) -> io::Result<Self> {
        let (sender, receiver) = oneshot::channel();
        spawner::spawn(command, move |spawned| {
            let started = spawned.map(|child| Self {
                child: scopeguard::guard(child, end),
            });
            // If the receiver is gone, the drop of the process here ends it.
            drop(sender.send(started));
        });
        receiver
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// The process; from now on the caller has to end it.
    pub(crate) fn into_child(self) -> Child {
        ScopeGuard::into_inner(self.child)
    }

    /// The exit status, if the process ends by itself within `limit`.
    pub(crate) async fn end(&mut self, limit: Duration) -> Option<ExitStatus> {
        /// How often the process is checked.
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

fn end(mut child: Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // Also if the process itself has ended: it may have left other processes behind.
        _ = kill_process_group(group, Signal::KILL);
    }
    // The process is killed individually, too, because it may have left its group.
    _ = child.kill();
    if !matches!(child.try_wait(), Ok(Some(_))) {
        // A thread that may block reaps the process when the kernel lets it end.
        let pid = child.id();
        let reaper = thread::Builder::new().name("tb-reaper".to_owned());
        if reaper.spawn(move || child.wait()).is_err() {
            tracing::debug!(pid, "a program that was ended is not reaped");
        }
    }
}
