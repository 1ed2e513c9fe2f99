//! Watches over the process of one toolbox, from its start until its hardware is at rest.
//!
//! Owns the process and every reason to end it: silence, a halt without an answer, too much memory, nonsense on its
//! sockets, a close that takes too long. When the process ends without being asked to, a fresh process calls
//! `safe_stop` at once. The manager does the restarts. `verdict` decides; this file collects the facts and carries out
//! the decisions. Read [`Keeper::watch`], then [`Keeper::exited`].

mod exit;
mod lines;
mod process;
mod reader;
mod safe_stop;
mod usage;
mod verdict;

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use protocol::MAX_CONTROL;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use crate::process::started_process::StartedProcess;
use crate::transport::peer::Peer;
use crate::transport::sockets::Sockets;
use lines::Lines;
pub(crate) use process::{Keeper, KeeperSettings};
use program::frame::Cutter;
use reader::Reader;
use verdict::Action;

impl Keeper {
    /// Starts the thread that keeps a process, and the task that reads its data socket. If they cannot be started, the process
    /// is ended. Called on a thread of the runtime.
    pub(crate) fn start(
        peer: Arc<Peer>,
        sockets: Arc<Sockets>,
        mut started: StartedProcess,
        settings: KeeperSettings,
    ) -> std::io::Result<()> {
        let pid = i32::try_from(started.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| std::io::Error::other("the process has no id"))?;
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        let reader = Reader::new(peer.clone(), sockets.clone(), settings.members.clone());
        let reader = Arc::new(reader);
        let reading = AbortOnDropHandle::new(Handle::current().spawn(reader.clone().serve()));
        let name = format!("tk-{}", peer.origin.toolbox_id);
        let lines = Lines::new(started.child.stderr.take())?;
        let watch = move || {
            let keeper = Self {
                peer,
                sockets,
                child: started.into_child(),
                process,
                lines,
                settings,
                reader,
                _reading: reading,
                cutter: Cutter::new(MAX_CONTROL),
                beats: 0,
                beat: None,
                unanswered: None,
                silence_reported: false,
                halt_began: None,
                beat_began: None,
                memory: Instant::now(),
                used: 0,
                broken: None,
                killed: None,
            };
            keeper.watch();
        };
        thread::Builder::new().name(name).spawn(watch).map(drop)
    }

    /// Keeps the process until it has ended.
    fn watch(mut self) {
        loop {
            self.wait();
            self.sockets.wake.clear();
            match &self.settings.members {
                Some(members) => members.catch_up(),
                None => self.sockets.control.flush(),
            }
            // Read before the decision: an answer of the child may have waited for this thread.
            if self.broken.is_none()
                && let Err(reason) = self.read_control()
            {
                self.broken = Some((reason, Instant::now()));
            }
            self.lines.read(&self.peer);
            if self.has_ended() {
                self.kill_group();
            }
            match self.child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => return self.exited(Some(status)),
                Err(_) => return self.exited(None),
            }
            if self.broken.is_none()
                && let Some(reason) = self.reader.ended()
            {
                self.broken = Some((reason.to_owned(), Instant::now()));
            }
            self.look_at_memory();
            match verdict::decide(&self.facts(), &self.limits()) {
                Action::Kill(reason) => self.kill(reason),
                // The hardware has to be brought to rest even if the kernel does not end the process.
                Action::GiveUp => return self.exited(None),
                Action::Beat => self.beat(),
                Action::Tell(reason) => self.tell(&reason),
                Action::Wait => {}
            }
        }
    }
}
