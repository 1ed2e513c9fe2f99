//! Watches over the process of one toolbox, from its start until its hardware is at rest.
//!
//! Owns the process and every reason to end it: silence, a halt without an answer, too much memory, nonsense on its
//! sockets, a close that takes too long. When it ends otherwise than it was asked to, a fresh process calls `safe_stop` at
//! once. Restarts are the manager's. Read [`Keeper::watch`], then [`Keeper::bury`].

use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use ovos_toolbox_abi::level;
use ovos_toolbox_wire::{Event, Severity};
use protocol::{MAX_CONTROL, MAX_DATA, Notice, Order};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::artifact::file::PluginFile;
use crate::contract::hosted::Death;
use crate::process::spawner::{Program, input, signal_name, spawn_now};
use crate::transport::frame::{Cutter, Frame};
use crate::transport::serve::SAFE_STOP;
use crate::transport::tether::{End, Outlook, Tether};

/// How often a child is asked whether it is alive while a caller waits for it.
const HEARTBEAT: Duration = Duration::from_millis(100);
/// How often the limits are looked at while a halt is under way.
const CLOSE_LOOK: Duration = Duration::from_millis(20);
/// How often the memory of a limited child is looked at.
const MEMORY_LOOK: Duration = Duration::from_secs(1);
/// How long a process has to end after its toolbox was closed, and after it was killed.
const EXIT: Duration = Duration::from_millis(500);
/// A process that dies closes its connections a moment before it is gone; one that is there after this long has closed
/// them while it lives.
const LAST_MOMENT: Duration = Duration::from_millis(50);
/// A child that is late because its threads wait for a processor is granted that time, up to this many times the limit: on a
/// machine that is that busy a fresh process would be no faster, and one that loads the machine itself is not waited for.
const MOST_PATIENCE: u32 = 3;

/// What a keeper needs to start the fresh process.
pub(crate) struct Keeping {
    pub(crate) program: Program,
    /// Owned: its copy of the service may be gone before its process is.
    pub(crate) file: Arc<PluginFile>,
    pub(crate) config: String,
    pub(crate) memory_mb: Option<u64>,
}

/// The thread that keeps one process.
pub(crate) struct Keeper {
    tether: Arc<Tether>,
    child: Child,
    process: OwnedFd,
    control: UnixStream,
    data: UnixStream,
    stderr: Option<ChildStderr>,
    line: Vec<u8>,
    keeping: Keeping,
    /// Says why the data socket ended.
    reader: Receiver<String>,
    cutter: Cutter,
    beats: u64,
    /// The last heartbeat that was sent, and when the oldest without an answer was.
    beat: Option<Instant>,
    unanswered: Option<Instant>,
    /// How long the child's threads had waited for a processor when a halt, or a heartbeat, began to be waited for.
    halt_began: Option<Duration>,
    beat_began: Option<Duration>,
    memory: Instant,
    /// Why nothing comes from it any more, and since when.
    broken: Option<(String, Instant)>,
    /// Why it is being ended, and since when.
    killed: Option<(String, Instant)>,
}

impl Keeper {
    /// Starts the threads that keep `child`. A child that cannot be kept is killed.
    pub(crate) fn start(
        tether: Arc<Tether>,
        mut child: Child,
        data: UnixStream,
        control: UnixStream,
        keeping: Keeping,
    ) -> std::io::Result<()> {
        let began = || -> std::io::Result<_> {
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let pid = pid.ok_or_else(|| std::io::Error::other("the process has no id"))?;
            Ok((pidfd_open(pid, PidfdFlags::empty())?, data.try_clone()?))
        };
        let (process, reading) = began().inspect_err(|_| {
            _ = child.kill();
            _ = child.wait();
        })?;
        let (ended, reader) = channel();
        let name = &tether.core.origin.toolbox_id;
        let (listener, names) = (tether.clone(), (format!("tr-{name}"), format!("tk-{name}")));
        thread::Builder::new().name(names.0).spawn(move || {
            let reason = read(&listener, reading);
            _ = ended.send(reason);
            listener.bell.ring();
        })?;
        let stderr = child.stderr.take();
        if let Some(stderr) = &stderr {
            rustix::io::ioctl_fionbio(stderr, true)?;
        }
        let keeper = Self {
            tether,
            child,
            process,
            control,
            data,
            stderr,
            line: Vec::new(),
            keeping,
            reader,
            cutter: Cutter::new(MAX_CONTROL),
            beats: 0,
            beat: None,
            unanswered: None,
            halt_began: None,
            beat_began: None,
            memory: Instant::now(),
            broken: None,
            killed: None,
        };
        thread::Builder::new()
            .name(names.1)
            .spawn(move || keeper.watch())
            .map(drop)
    }

    /// Keeps the process until it has ended.
    fn watch(mut self) {
        loop {
            self.wait();
            self.tether.bell.hush();
            self.tether.control.flush();
            self.tether.data.flush();
            // Before anything is judged: what the child said may have waited for this thread rather than the reverse.
            if self.broken.is_none()
                && let Err(reason) = self.read_control()
            {
                self.broken = Some((reason, Instant::now()));
            }
            self.read_stderr();
            match self.child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => return self.bury(Some(status)),
                Err(_) => return self.bury(None),
            }
            if let Some((_, since)) = &self.killed {
                if since.elapsed() > EXIT {
                    // Stuck in the kernel. Its hardware cannot wait for that.
                    return self.bury(None);
                }
                continue;
            }
            let outlook = self.tether.outlook();
            self.judge(&outlook);
        }
    }

    /// Waits until there is something to do.
    fn wait(&self) {
        let timeout = self.next_look();
        let timeout = timeout.map(|limit| Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(limit.subsec_nanos()),
        });
        let events = |behind: bool| {
            if behind {
                PollFlags::OUT
            } else {
                PollFlags::empty()
            }
        };
        let control = events(self.tether.control.is_behind()) | PollFlags::IN;
        let mut fds = vec![
            PollFd::new(&self.process, PollFlags::IN),
            PollFd::new(&*self.tether.bell, PollFlags::IN),
        ];
        if self.killed.is_none() && self.broken.is_none() {
            fds.push(PollFd::new(&self.control, control));
            if self.tether.data.is_behind() {
                fds.push(PollFd::new(&self.tether.data, PollFlags::OUT));
            }
        }
        if let Some(stderr) = &self.stderr {
            fds.push(PollFd::new(stderr, PollFlags::IN));
        }
        _ = poll(&mut fds, timeout.as_ref());
    }

    /// How long nothing has to be looked at by itself.
    fn next_look(&self) -> Option<Duration> {
        if self.killed.is_some() || self.broken.is_some() {
            return Some(CLOSE_LOOK);
        }
        let outlook = self.tether.outlook();
        if outlook.halted.is_some() || outlook.closed.is_some() {
            return Some(CLOSE_LOOK);
        }
        if self.tether.armed.load(Ordering::SeqCst) {
            let since = self.beat.map_or(HEARTBEAT, |beat| beat.elapsed());
            return Some(HEARTBEAT.saturating_sub(since));
        }
        if outlook.closing.is_some() {
            return Some(HEARTBEAT);
        }
        self.keeping.memory_mb.map(|_| MEMORY_LOOK)
    }

    /// Looks at the limits.
    fn judge(&mut self, outlook: &Outlook) {
        if self.broken.is_none()
            && let Ok(reason) = self.reader.try_recv()
        {
            self.broken = Some((reason, Instant::now()));
        }
        if let Some((reason, since)) = &self.broken
            && outlook.closed.is_none()
            && since.elapsed() > LAST_MOMENT
        {
            let reason = reason.clone();
            return self.kill(&reason);
        }
        if let Some(reason) = &outlook.given_up {
            return self.kill(reason);
        }
        let limits = &self.tether.core.limits;
        let (silence, halt, close) = (limits.silence, limits.halt, limits.close);
        if self.is_late(outlook.halted, halt, |keeper| &mut keeper.halt_began) {
            return self.kill(&format!(
                "it did not answer a halt within {} ms",
                halt.as_millis()
            ));
        }
        if self.is_late(self.unanswered, silence, |keeper| &mut keeper.beat_began) {
            return self.kill(&format!("it was silent for {} ms", silence.as_millis()));
        }
        if let Some((_, since)) = outlook.closed {
            if since.elapsed() > EXIT {
                self.kill("it did not end after its toolbox was closed");
            }
            return;
        }
        if outlook.closing.is_some_and(|since| since.elapsed() > close) {
            let text = format!("it did not close within {} s", close.as_secs_f64());
            return self.kill(&text);
        }
        if self.tether.armed.load(Ordering::SeqCst) {
            self.beat(outlook.busy);
        }
        self.look_at_memory();
    }

    /// Whether something has been waited for longer than it may take, the time not counted for which the child had no
    /// processor. `began` is where its count stood when the wait began.
    fn is_late(
        &mut self,
        since: Option<Instant>,
        limit: Duration,
        began: fn(&mut Self) -> &mut Option<Duration>,
    ) -> bool {
        let Some(since) = since else {
            *began(self) = None;
            return false;
        };
        if began(self).is_none() {
            let waited = self.waited();
            *began(self) = Some(waited);
        }
        if since.elapsed() <= limit {
            return false;
        }
        let before = began(self).unwrap_or_default();
        let starved = self.waited().saturating_sub(before).min(limit * MOST_PATIENCE);
        since.elapsed() > limit + starved
    }

    /// How long the child's threads have waited for a processor, all together; nothing where the kernel does not count it.
    fn waited(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let waited = |thread: std::io::Result<std::fs::DirEntry>| {
            let count = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            count.split(' ').nth(1)?.parse::<u64>().ok()
        };
        let waited = threads.map_or(0, |threads| threads.filter_map(waited).sum());
        Duration::from_nanos(waited)
    }

    /// Asks whether the child is alive, while calls or orders need it to be.
    fn beat(&mut self, busy: bool) {
        if self.beat.is_some_and(|beat| beat.elapsed() < HEARTBEAT) {
            return;
        }
        if !busy {
            self.tether.armed.store(false, Ordering::SeqCst);
            // What began between the look and the store saw `armed` and did not ring.
            if !self.tether.outlook().busy {
                self.beat = None;
                self.unanswered = None;
                return;
            }
            self.tether.armed.store(true, Ordering::SeqCst);
        }
        self.beats += 1;
        let now = Instant::now();
        self.beat = Some(now);
        self.unanswered.get_or_insert(now);
        let seq = self.beats;
        self.tether.control.send(&Frame::of(&Order::Beat { seq }));
    }

    fn look_at_memory(&mut self) {
        let Some(limit) = self.keeping.memory_mb else {
            return;
        };
        if self.memory.elapsed() < MEMORY_LOOK {
            return;
        }
        self.memory = Instant::now();
        let path = format!("/proc/{}/statm", self.child.id());
        let pages = std::fs::read_to_string(path).ok();
        let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
        let used = pages.unwrap_or(0) * rustix::param::page_size() as u64 / (1 << 20);
        if used > limit {
            self.kill(&format!(
                "it used {used} MiB of memory; {limit} are allowed (limits.memory_mb)"
            ));
        }
    }

    fn read_control(&mut self) -> Result<(), String> {
        let mut bytes = [0; 16 * 1024];
        loop {
            match (&self.control).read(&mut bytes) {
                Ok(0) => return Err("it closed its control connection".to_owned()),
                Ok(count) => self.cutter.push(&bytes[..count]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(format!("its control connection broke: {e}")),
            }
            self.unanswered = None;
            while let Some(notice) = self.cutter.read().map_err(|e| e.to_string())? {
                match notice {
                    Notice::Halted { seq, answer } | Notice::Resumed { seq, answer } => {
                        self.tether.commanded(seq, answer);
                    }
                    // The others mean only that the child was heard.
                    _ => {}
                }
            }
        }
    }

    /// Keeps the lines that the process prints.
    fn read_stderr(&mut self) {
        let Some(stderr) = &mut self.stderr else { return };
        let mut bytes = [0; 4096];
        // A flood is left in the pipe for the next time: the control socket comes first.
        for _ in 0..16 {
            match stderr.read(&mut bytes) {
                Ok(0) => {
                    self.stderr = None;
                    break;
                }
                Ok(count) => self.line.extend_from_slice(&bytes[..count]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        // A line without an end is cut rather than kept.
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n').or_else(|| {
            let rest = !self.line.is_empty() && (self.line.len() > 4096 || self.stderr.is_none());
            rest.then(|| self.line.len().min(4096) - 1)
        }) {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            self.tether.keep_line(&line);
            self.tether.core.log(level::INFO, "stderr", Ok(&line));
        }
    }

    /// Ends the process. The first reason counts.
    fn kill(&mut self, reason: &str) {
        if self.killed.is_none() {
            self.killed = Some((reason.to_owned(), Instant::now()));
            // Its end is what makes it gone; when that cannot be had the deadline above goes on without it.
            _ = pidfd_send_signal(&self.process, Signal::KILL);
        }
    }

    /// The process is gone.
    fn bury(mut self, status: Option<ExitStatus>) {
        let outlook = self.tether.outlook();
        let orderly = outlook.closed.is_some();
        // What moved when it ended; what it completed before that is still in the socket, but better once too often.
        let moving = self.tether.is_moving();
        // A toolbox that never said which functions it has may have been opening its hardware.
        let has_safe_stop = outlook.functions.is_none_or(|functions| functions.safe_stop);
        let fresh = (!orderly && has_safe_stop).then(|| self.safe_stop()).flatten();
        self.read_stderr();
        // Reads what it said before it ended. Another process may hold its end of the socket, so the wait is bounded.
        let heard = self.reader.recv_timeout(Duration::from_millis(200));
        if let Err(RecvTimeoutError::Timeout) = heard {
            _ = self.data.shutdown(Shutdown::Both);
            _ = self.reader.recv_timeout(Duration::from_millis(200));
        }
        let outlook = self.tether.outlook();
        let end = match (outlook.closed, outlook.closing) {
            (Some((in_time, _)), _) => End::Closed(in_time),
            (None, Some(_)) => {
                tracing::error!(
                    toolbox = &*self.tether.core.origin.toolbox_id,
                    generation = self.tether.core.origin.generation,
                    reason = self.reason(status),
                    "the toolbox's process ended while it was closed"
                );
                End::Closed(false)
            }
            (None, None) => End::Died(Death {
                reason: self.reason(status),
                moving,
            }),
        };
        let by_itself = outlook.closed.is_none() && (outlook.closing.is_none() || self.killed.is_none());
        if moving && by_itself {
            // Latched here and not by the manager: before the end is published and something else could start.
            self.latch(&self.reason(status));
        }
        self.tether.bury(end);
        if let Some(fresh) = fresh {
            self.see_to_rest(fresh);
        }
        self.tether.rested.send_replace(true);
        if status.is_none() {
            // Reaped whenever the kernel lets go of it.
            _ = self.child.wait();
        }
    }

    fn latch(&self, reason: &str) {
        let core = &self.tether.core;
        let event = Event {
            kind: "latched".to_owned(),
            severity: Severity::Error,
            data: Some(serde_json::json!({ "reason": format!("it died while something moved: {reason}") })),
        };
        core.services.event(&core.origin, event);
    }

    fn reason(&self, status: Option<ExitStatus>) -> String {
        let ended = match (&self.killed, status) {
            (Some((reason, _)), _) => format!("its process was killed: {reason}"),
            (None, Some(status)) => match (status.signal(), status.code()) {
                (Some(signal), _) => {
                    format!("its process was ended by signal {signal}{}", signal_name(signal))
                }
                (None, Some(code)) => format!("its process ended with exit code {code}"),
                (None, None) => "its process ended".to_owned(),
            },
            (None, None) => "its process is gone".to_owned(),
        };
        match self.tether.last_lines() {
            lines if lines.is_empty() => ended,
            lines => format!("{ended}; its last lines: {lines}"),
        }
    }

    /// Starts the process that brings the hardware to rest.
    fn safe_stop(&self) -> Option<Child> {
        let Keeping {
            program,
            file,
            config,
            ..
        } = &self.keeping;
        let mut command = program.command("--safe-stop", file.path());
        let spawned = input(config).and_then(|config| {
            command
                .stdin(config)
                .stdout(Stdio::null())
                .stderr(Stdio::inherit());
            spawn_now(command)
        });
        spawned
            .inspect_err(|error| {
                tracing::error!(toolbox = &*self.tether.core.origin.toolbox_id, %error, "safe_stop could not be called");
            })
            .ok()
    }

    /// Waits for `safe_stop`.
    fn see_to_rest(&self, mut fresh: Child) {
        let id = &*self.tether.core.origin.toolbox_id;
        let until = Instant::now() + SAFE_STOP;
        loop {
            match fresh.try_wait() {
                Ok(Some(status)) if status.success() => {
                    tracing::info!(
                        toolbox = id,
                        "a fresh process called safe_stop after the toolbox's process ended"
                    );
                    return;
                }
                Ok(Some(status)) => {
                    tracing::error!(toolbox = id, %status, "safe_stop failed");
                    return;
                }
                Ok(None) if Instant::now() < until => {
                    let pid = i32::try_from(fresh.id()).ok().and_then(Pid::from_raw);
                    let ended = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
                    if let Some(ended) = ended {
                        let mut fds = [PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN)];
                        let limit = Timespec {
                            tv_sec: 1,
                            tv_nsec: 0,
                        };
                        _ = poll(&mut fds, Some(&limit));
                    } else {
                        thread::sleep(CLOSE_LOOK);
                    }
                }
                Ok(None) | Err(_) => {
                    tracing::error!(
                        toolbox = id,
                        limit_ms = SAFE_STOP.as_millis(),
                        "safe_stop did not return"
                    );
                    _ = fresh.kill();
                    _ = fresh.wait();
                    return;
                }
            }
        }
    }
}

/// Reads the data socket to its end; says why that came.
fn read(tether: &Tether, mut stream: UnixStream) -> String {
    let mut cutter = Cutter::new(MAX_DATA);
    let mut bytes = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return "it closed its data connection".to_owned(),
            Ok(count) => cutter.push(&bytes[..count]),
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return format!("its data connection broke: {e}"),
        }
        loop {
            let heard = match cutter.read() {
                Ok(None) => break,
                Ok(Some(notice)) => tether.hear(notice),
                Err(error) => Err(error.to_string()),
            };
            if let Err(reason) = heard {
                return format!("it sent nonsense: {reason}");
            }
        }
    }
}
