//! The toolbox's hold on a program that moves the robot.
//!
//! Owns the keeper of the program, and what is known of both. Killing never blocks and needs no answer. Read [`Guest`].

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ovos_toolbox_sdk::{RoleEvent, RoleProcess};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use tokio::sync::watch;

use super::keeper::ROLE;
use super::words::{Ending, Errand, Order, Word};

/// How far a program is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its keeper waits for its errand.
    Waiting,
    /// It runs.
    Running,
    /// It was not started, and why.
    NotBegun(String),
    /// It has ended, with all that it had started.
    Ended(Ending),
    /// Its keeper has ended before it, and how; then it was killed.
    Lost(String),
}

impl Stage {
    /// Whether nothing of the program runs any more.
    pub(crate) fn is_over(&self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }
}

/// Called once, on a thread of the guest, when its program is over and before anybody is told so.
type WhenOver = Box<dyn FnOnce() + Send>;

/// A program that moves the robot, or will.
///
/// It keeps itself until it is over: what drops it does not end it.
pub(crate) struct Guest {
    keeper: OnceLock<RoleProcess>,
    process: Mutex<Option<Process>>,
    killed: AtomicBool,
    stage: watch::Sender<Stage>,
    over: Mutex<Option<WhenOver>>,
}

/// The program's process. The handle is that process and no later one with its number.
struct Process {
    pid: Pid,
    handle: OwnedFd,
}

impl Guest {
    /// Starts the keeper, which waits for the program that it is to start.
    ///
    /// # Errors
    /// The process of the keeper, or its thread, cannot be started.
    pub(crate) fn invite(over: impl FnOnce() + Send + 'static) -> io::Result<Arc<Self>> {
        let guest = Arc::new(Self {
            keeper: OnceLock::new(),
            process: Mutex::default(),
            killed: AtomicBool::new(false),
            stage: watch::Sender::new(Stage::Waiting),
            over: Mutex::new(Some(Box::new(over))),
        });
        let hearing = Arc::clone(&guest);
        let keeper = RoleProcess::start(ROLE, &[], move |event| hearing.hear(event))?;
        _ = guest.keeper.set(keeper);
        Ok(guest)
    }

    /// Starts the program.
    ///
    /// # Errors
    /// Its keeper is gone.
    pub(crate) fn begin(&self, errand: &Errand) -> io::Result<()> {
        let gone = || io::Error::from(io::ErrorKind::NotConnected);
        self.keeper.get().ok_or_else(gone)?.tell(errand)
    }

    /// Asks the program to end; its keeper makes it end if it does not.
    pub(crate) fn end(&self) {
        self.order(Order::End);
    }

    /// Kills the program. Never waits for it.
    pub(crate) fn kill(&self) {
        let again = self.killed.swap(true, Ordering::SeqCst);
        self.kill_process();
        // Its keeper kills what the program has started, too. It is told once, so that what it is told always fits into its socket.
        if !again {
            self.order(Order::Kill);
        }
    }

    /// Kills the program and waits until its process has ended, at most for `patience`.
    pub(crate) fn kill_within(&self, patience: Duration) {
        self.kill();
        let process = self.process.lock();
        if let Some(process) = process.as_ref() {
            let patience = Timespec::try_from(patience).ok();
            // A process that has ended is readable.
            _ = poll(
                &mut [PollFd::new(&process.handle, PollFlags::IN)],
                patience.as_ref(),
            );
        }
    }

    /// How far it is, now and later.
    pub(crate) fn watch(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    /// Whether nothing of it runs any more.
    pub(crate) fn is_over(&self) -> bool {
        self.stage.borrow().is_over()
    }

    /// Whether what it was given to call when it is over is still to be called.
    pub(crate) fn will_return(&self) -> bool {
        self.over.lock().is_some()
    }

    fn order(&self, order: Order) {
        // Fails only where the keeper has ended, which is heard.
        _ = self.keeper.get().map(|keeper| keeper.tell(&order));
    }

    fn kill_process(&self) {
        let process = self.process.lock();
        if let Some(process) = process.as_ref() {
            // Fails only where it has ended.
            _ = pidfd_send_signal(&process.handle, Signal::KILL);
        }
    }

    fn hear(&self, event: RoleEvent<Word>) {
        match event {
            RoleEvent::Word(Word::Begun(pid)) => {
                let pid = Pid::from_raw(pid);
                let process = pid.and_then(|pid| {
                    let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
                    Some(Process { pid, handle })
                });
                *self.process.lock() = process;
                if self.killed.load(Ordering::SeqCst) {
                    self.kill_process();
                }
                self.stage.send_replace(Stage::Running);
            }
            RoleEvent::Word(Word::NotBegun(why)) => self.conclude(Stage::NotBegun(why)),
            RoleEvent::Word(Word::Ended(ending)) => self.conclude(Stage::Ended(ending)),
            RoleEvent::End(how) if !self.is_over() => {
                let process = self.process.lock();
                if let Some(process) = process.as_ref()
                    && pidfd_send_signal(&process.handle, Signal::KILL).is_ok()
                {
                    // It had not ended, so that its group is still its own.
                    _ = kill_process_group(process.pid, Signal::KILL);
                }
                drop(process);
                self.conclude(Stage::Lost(how));
            }
            RoleEvent::End(_) => {}
        }
    }

    fn conclude(&self, stage: Stage) {
        let over = self.over.lock().take();
        if let Some(over) = over {
            over();
        }
        self.stage.send_replace(stage);
    }
}
