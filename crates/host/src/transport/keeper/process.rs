//! The process that a keeper keeps: the facts about it, the wait for it, and what can be done to it.
//!
//! Read [`Keeper::facts`].

use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{Event, Severity};
use protocol::{Notice, Order};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_send_signal, waitid};
use tokio_util::task::AbortOnDropHandle;

use super::lines::Lines;
use super::reader::Reader;
use super::usage;
use super::verdict::{self, Facts, Limits, Wait};
use crate::artifact::file::PluginFile;
use crate::process::spawner::Program;
use crate::process::work_folder::WorkFolder;
use crate::transport::lanes::Lanes;
use crate::transport::members::Members;
use crate::transport::peer::Peer;
use crate::transport::sockets::Sockets;
use program::frame::{self, Cutter, FrameError};

/// What a keeper needs to start the fresh process.
pub(crate) struct KeeperSettings {
    pub(crate) program: Program,
    /// Owned, because the service may drop its copy of the toolbox before the process has ended.
    pub(crate) file: Arc<PluginFile>,
    pub(crate) config: String,
    pub(crate) memory_mb: Option<u64>,
    /// The toolboxes of the process, if it is several.
    pub(crate) members: Option<Arc<Members>>,
    /// The hashes that a program's script may have; empty: any.
    pub(crate) allow_sha256: Vec<String>,
    /// The working directory of a program. Only held, so that it is not removed.
    pub(crate) _folder: Option<WorkFolder>,
}

/// The thread that keeps one process.
pub(crate) struct Keeper {
    pub(super) peer: Arc<Peer>,
    pub(super) sockets: Arc<Sockets>,
    pub(super) child: Child,
    pub(super) process: OwnedFd,
    pub(super) lines: Lines,
    pub(super) settings: KeeperSettings,
    pub(super) reader: Arc<Reader>,
    /// Reads the data socket.
    pub(super) _reading: AbortOnDropHandle<()>,
    pub(super) cutter: Cutter,
    pub(super) beats: u64,
    /// When the last heartbeat was sent, and when the oldest one without an answer was sent.
    pub(super) beat: Option<Instant>,
    pub(super) unanswered: Option<Instant>,
    /// Whether it was reported that heartbeats are not answered.
    pub(super) silence_reported: bool,
    /// How long the child's threads had waited for a processor when the wait for a halt, and the wait for a heartbeat,
    /// began.
    pub(super) halt_began: Option<Duration>,
    pub(super) beat_began: Option<Duration>,
    /// When the process's memory was last read, and the memory that it used then, in MiB.
    pub(super) memory: Instant,
    pub(super) used: u64,
    /// Why nothing can be received from the process any more, and since when.
    pub(super) broken: Option<(String, Instant)>,
    /// Why the process was killed, and when.
    pub(super) killed: Option<(String, Instant)>,
}

impl Keeper {
    pub(super) fn id(&self) -> &str {
        &self.peer.origin.toolbox_id
    }

    pub(super) fn limits(&self) -> Limits {
        let limits = &self.peer.limits;
        Limits {
            halt: limits.halt,
            silence: limits.silence,
            close: limits.close,
            memory_mb: self.settings.memory_mb,
            bears_silence: self.settings.members.is_some(),
        }
    }

    /// The present facts about the process.
    pub(super) fn facts(&mut self) -> Facts {
        let view = self.peer.keeper_view();
        let (halt, silence) = (self.peer.limits.halt, self.peer.limits.silence);
        Facts {
            killed: self.killed.as_ref().map(|(_, since)| since.elapsed()),
            broken: self
                .broken
                .as_ref()
                .map(|(reason, since)| (reason.clone(), since.elapsed())),
            given_up: view.given_up,
            halted: self.waiting(view.halted, halt, |keeper| &mut keeper.halt_began),
            unanswered: self.waiting(self.unanswered, silence, |keeper| &mut keeper.beat_began),
            closing: view.closing.map(|since| since.elapsed()),
            closed: view.closed.map(|(_, since)| since.elapsed()),
            armed: self.sockets.armed.load(Ordering::SeqCst),
            beat: self.beat.map(|beat| beat.elapsed()),
            silence_reported: self.silence_reported,
            used_mb: self.used,
        }
    }

    /// Waits until there is something to do.
    pub(super) fn wait(&mut self) {
        let timeout = verdict::next_look(&self.facts(), &self.limits());
        let timeout = timeout.and_then(|limit| Timespec::try_from(limit).ok());
        let control = if self.sockets.control.is_behind() {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        };
        let mut fds = vec![
            PollFd::new(&self.process, PollFlags::IN),
            PollFd::new(&*self.sockets.wake, PollFlags::IN),
        ];
        if self.killed.is_none() && self.broken.is_none() {
            fds.push(PollFd::new(self.sockets.control.stream(), control));
        }
        if let Some(stderr) = self.lines.source() {
            fds.push(PollFd::new(stderr, PollFlags::IN));
        }
        _ = poll(&mut fds, timeout.as_ref());
    }

    /// How long a wait has lasted since `since`, and how long the child had no processor in that time. The latter is
    /// read only when the wait exceeds the limit. `began` selects the count of the child's waiting time at the
    /// beginning of the wait.
    fn waiting(
        &mut self,
        since: Option<Instant>,
        limit: Duration,
        began: fn(&mut Self) -> &mut Option<Duration>,
    ) -> Option<Wait> {
        let Some(since) = since else {
            *began(self) = None;
            return None;
        };
        if began(self).is_none() {
            let waited = usage::waited(self.child.id());
            *began(self) = Some(waited);
        }
        let mut starved = Duration::ZERO;
        if since.elapsed() > limit {
            let before = began(self).unwrap_or_default();
            starved = usage::waited(self.child.id()).saturating_sub(before);
        }
        Some(Wait {
            lasted: since.elapsed(),
            starved,
        })
    }

    /// Whether calls or orders need the process to be alive.
    fn is_busy(&self) -> bool {
        let members = self.settings.members.as_ref();
        self.peer.keeper_view().busy || members.is_some_and(|members| members.is_busy())
    }

    /// Reports that the toolboxes of the process do not answer. The process is not ended for this reason, because these
    /// toolboxes move nothing.
    pub(super) fn tell(&mut self, reason: &str) {
        self.silence_reported = true;
        self.silence(true);
        tracing::warn!(program = self.id(), reason, "a program does not answer");
        for origin in self.settings.members.iter().flat_map(|members| members.origins()) {
            let event = Event {
                kind: "not_reached".to_owned(),
                severity: Severity::Warning,
                data: Some(serde_json::json!({ "reason": reason })),
            };
            self.peer.services.event(&origin, event);
        }
    }

    fn silence(&self, silent: bool) {
        if let Some(members) = &self.settings.members {
            members.silent.store(silent, Ordering::SeqCst);
        }
    }

    /// Sends a heartbeat, while calls or orders need the child to be alive.
    pub(super) fn beat(&mut self) {
        if !self.is_busy() {
            self.sockets.armed.store(false, Ordering::SeqCst);
            // A call that began between the check and the store saw `armed` and did not wake this thread: check again.
            if !self.is_busy() {
                self.beat = None;
                self.unanswered = None;
                return;
            }
            self.sockets.armed.store(true, Ordering::SeqCst);
        }
        self.beats += 1;
        let now = Instant::now();
        self.beat = Some(now);
        self.unanswered.get_or_insert(now);
        let seq = self.beats;
        self.sockets.control(Order::Beat { seq });
    }

    pub(super) fn look_at_memory(&mut self) {
        if self.settings.memory_mb.is_none() || self.memory.elapsed() < verdict::MEMORY_LOOK {
            return;
        }
        self.memory = Instant::now();
        self.used = usage::memory_mb(self.child.id());
    }

    pub(super) fn read_control(&mut self) -> Result<(), String> {
        let mut bytes = [0; 16 * 1024];
        // The rest of a flood stays in the socket for the next round, so that the limits are checked in between.
        for _ in 0..16 {
            match self.sockets.control.stream().read(&mut bytes) {
                Ok(0) => return Err("it closed its control connection".to_owned()),
                Ok(count) => self.cutter.push(&bytes[..count]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(format!("its control connection broke: {e}")),
            }
            self.unanswered = None;
            if std::mem::take(&mut self.silence_reported) {
                self.silence(false);
            }
            while let Some(body) = self.cutter.body().map_err(|e| e.to_string())? {
                self.hear(&body).map_err(|e| e.to_string())?;
            }
        }
        Ok(())
    }

    fn hear(&self, body: &[u8]) -> Result<(), FrameError> {
        let notice = frame::read(body)?;
        // Other notices only show that the child is alive.
        if matches!(notice, Notice::Halted { .. } | Notice::Resumed { .. }) {
            match &self.settings.members {
                Some(members) => members.hear_control(frame::address(body)?.as_deref(), notice),
                None => self.peer.hear(notice),
            }
        }
        Ok(())
    }

    /// Kills the process. The first reason counts.
    pub(super) fn kill(&mut self, reason: String) {
        if self.killed.is_none() {
            self.killed = Some((reason, Instant::now()));
            // The process counts as gone when it has ended, or when it does not end in time after this signal.
            _ = pidfd_send_signal(&self.process, Signal::KILL);
            self.kill_group();
        }
    }

    /// Whether the process has ended. Its id stays reserved until it is reaped.
    pub(super) fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::PidFd(self.process.as_fd()), look), Ok(Some(_)))
    }

    /// Kills the processes that a program has left in its process group: they could go on commanding the hardware
    /// beside the fresh process. Processes that a plugin starts may outlive it, such as the server of a vehicle.
    pub(super) fn kill_group(&self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group.filter(|_| self.settings.file.executable().is_some()) {
            // Fails if the group has no process.
            _ = kill_process_group(group, Signal::KILL);
        }
    }
}
