//! The control socket of a toolbox's process: cancel, halt, resume and heartbeats, on a thread that does nothing else.
//!
//! Owns the end of the process too: when the service is gone, everything is brought to rest first. Read [`Control::run`].

use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;

use ovos_toolbox_wire::{Event, Severity};
use protocol::{MAX_CONTROL, Notice, Raw};
use rustix::event::{PollFd, PollFlags, poll};
use tokio::runtime::Handle;

use super::host::{Host, timespec};
use super::{LOOK, kill_self};
use crate::ffi::in_process::InProcess;
use crate::ffi::server::Notices;
use crate::process::spawner::input;
use crate::transport::frame::Cutter;
use crate::transport::outlet::Outlet;
use engine::{Halt, Toolbox};

/// How long a toolbox has to halt when the service is gone, before a fresh process brings its hardware to rest.
const LAST_HALT: Duration = Duration::from_millis(300);
/// How long it then has to close.
const LAST_CLOSE: Duration = Duration::from_secs(2);

/// How often a toolbox that is in one of its functions is looked at. Heartbeats, which come while the service
/// waits for the toolbox, start the looks; they go on after that, because a toolbox may hang when no call waits for it.
const HANGS_LOOK: Duration = Duration::from_secs(1);

/// The thread of the control socket.
pub(super) struct Control {
    pub(super) host: Arc<Host>,
    pub(super) stream: UnixStream,
    pub(super) runtime: Handle,
}

impl Control {
    pub(super) fn run(self) {
        let mut cutter = Cutter::new(MAX_CONTROL);
        let reason = loop {
            self.wait();
            self.host.outlets.bell.hush();
            self.host.outlets.control.flush();
            self.host.outlets.data.flush();
            if let Err(reason) = self.read(&mut cutter) {
                break reason;
            }
            if self.host.leaving.load(Ordering::SeqCst) {
                break "the service is gone, or asked the process to end".to_owned();
            }
            let silence = self.host.silence_ms.load(Ordering::SeqCst);
            if self.host.server.is_moving() && self.host.outlets.silence() > Duration::from_millis(silence) {
                break format!("no word of the service for {silence} ms while something moved");
            }
            if let Some(function) = self.host.server.toolbox().and_then(|toolbox| toolbox.overdue()) {
                self.die(&format!("{function}() has not returned within `limits.open_ms`"));
            }
        };
        self.end(&reason);
    }

    /// Waits for something to do.
    fn wait(&self) {
        let behind = |outlet: &Outlet| {
            if outlet.is_behind() {
                PollFlags::OUT
            } else {
                PollFlags::empty()
            }
        };
        let outlets = &self.host.outlets;
        let (control, data) = (behind(&outlets.control), behind(&outlets.data));
        let timeout = if self.host.server.is_moving() {
            Some(timespec(LOOK))
        } else {
            let toolbox = self.host.server.toolbox();
            let hangs_perhaps = toolbox.is_some_and(|toolbox| toolbox.is_inside());
            hangs_perhaps.then(|| timespec(HANGS_LOOK))
        };
        let (stream, outlet, bell) = (self.stream.as_fd(), outlets.data.as_fd(), outlets.bell.as_fd());
        let mut fds = vec![
            PollFd::new(&stream, PollFlags::IN | control),
            PollFd::new(&bell, PollFlags::IN),
        ];
        if !data.is_empty() {
            fds.push(PollFd::new(&outlet, data));
        }
        _ = poll(&mut fds, timeout.as_ref());
    }

    /// Reads what is there and does it.
    fn read(&self, cutter: &mut Cutter) -> Result<(), String> {
        let mut bytes = [0; 16 * 1024];
        loop {
            match (&self.stream).read(&mut bytes) {
                Ok(0) => return Err("the service is gone".to_owned()),
                Ok(count) => cutter.push(&bytes[..count]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(format!("the control connection broke: {e}")),
            }
            self.host.outlets.heard();
            while let Some(order) = cutter.read().map_err(|e| e.to_string())? {
                self.host.server.control(order);
            }
        }
    }

    /// Ends a process of no more use, for the service to start another one; what is under way is lost and says why.
    fn die(&self, reason: &str) -> ! {
        self.host.warn(reason);
        if let Some(toolbox) = self.host.server.toolbox() {
            // The fresh process calls `safe_stop`, which not every toolbox has.
            let halted = toolbox.halt(last_halt(&toolbox));
            self.within(LAST_HALT, async move { halted.await.is_ok() });
        }
        kill_self()
    }

    /// Brings everything to rest and ends the process.
    fn end(&self, reason: &str) -> ! {
        self.host.warn(reason);
        if self.host.server.is_moving() {
            // Should the service be there after all: this is an emergency stop, and nothing moves after it until a resume.
            self.host.outlets.data(&Notice::Event(Raw::of(&Event {
                kind: "latched".to_owned(),
                severity: Severity::Error,
                data: Some(serde_json::json!({ "reason": reason })),
            })));
        }
        if let Some(toolbox) = self.host.server.toolbox() {
            let halted = toolbox.halt(last_halt(&toolbox));
            if !self.within(LAST_HALT, async move { halted.await.is_ok() }) {
                self.safe_stop();
            }
            self.within(LAST_CLOSE, async move { toolbox.close().await });
        }
        kill_self()
    }

    fn within(&self, limit: Duration, done: impl Future<Output = bool> + Send + 'static) -> bool {
        let (tell, told) = channel();
        self.runtime.spawn(async move { _ = tell.send(done.await) });
        told.recv_timeout(limit).unwrap_or(false)
    }

    /// A fresh process brings the hardware to rest when this one cannot.
    fn safe_stop(&self) {
        let Ok(config) = input(&self.host.config.lock()) else {
            return;
        };
        // It goes on by itself: this process ends before it does.
        _ = Command::new("/proc/self/exe")
            .args([
                "toolbox-host".as_ref(),
                "--safe-stop".as_ref(),
                self.host.file.as_os_str(),
            ])
            .stdin(config)
            .spawn();
    }
}

/// Of everything; newer than any start.
fn last_halt(toolbox: &InProcess) -> Halt {
    Halt {
        subsystems: vec!["all".to_owned()],
        emergency: true,
        stop_epoch: toolbox.stop_epoch().saturating_add(1),
    }
}
