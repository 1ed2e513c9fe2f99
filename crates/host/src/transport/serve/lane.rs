//! The control socket of a toolbox's process: cancel, halt, resume and heartbeats, on a thread that does nothing else.
//!
//! Also ends the process: when the service is gone, it first brings everything to rest. Read [`Control::run`].

use std::io::{ErrorKind, Read};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;

use ovos_toolbox_wire::{Event, Severity};
use protocol::{MAX_CONTROL, Notice, Raw};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::host::{Host, kill_self};
use crate::ffi::plugin::Plugin;
use crate::ffi::server::Notices;
use crate::process::spawner::input;
use crate::transport::frame::Cutter;
use engine::Halt;

/// How often the child checks whether the service is silent, while something moves.
const LOOK: Duration = Duration::from_millis(50);

/// How long a toolbox has to halt when the service is gone, before a fresh process brings its hardware to rest.
const LAST_HALT: Duration = Duration::from_millis(300);
/// How long the toolbox then has to close.
const LAST_CLOSE: Duration = Duration::from_secs(2);

/// How often a call into the toolbox is checked for a hang. Heartbeats, which come while the service waits for the
/// toolbox, start the checks; the checks go on afterwards, because a toolbox may hang when no call waits for it.
const HANGS_LOOK: Duration = Duration::from_secs(1);

/// The thread of the control socket.
pub(super) struct Control {
    pub(super) host: Arc<Host>,
}

impl Control {
    pub(super) fn run(self) {
        let mut cutter = Cutter::new(MAX_CONTROL);
        let reason = loop {
            self.wait();
            self.host.notifier.wake.clear();
            self.host.notifier.control.flush();
            if let Err(reason) = self.read(&mut cutter) {
                break reason;
            }
            if self.host.leaving.load(Ordering::SeqCst) {
                break "the service is gone, or asked the process to end".to_owned();
            }
            let silence = self.host.silence_ms.load(Ordering::SeqCst);
            if self.host.server.is_moving() && self.host.notifier.silence() > Duration::from_millis(silence) {
                break format!("nothing was heard from the service for {silence} ms while something moved");
            }
            if let Some(function) = self.host.server.plugin().and_then(Plugin::overdue) {
                self.die(&format!("{function}() has not returned within `limits.open_ms`"));
            }
        };
        self.end(&reason);
    }

    /// Waits for something to do.
    fn wait(&self) {
        let notifier = &self.host.notifier;
        let behind = if notifier.control.is_behind() {
            PollFlags::OUT
        } else {
            PollFlags::empty()
        };
        let timeout = if self.host.server.is_moving() {
            Some(LOOK)
        } else {
            let plugin = self.host.server.plugin();
            let hangs_perhaps = plugin.is_some_and(|plugin| plugin.meter.is_inside());
            hangs_perhaps.then_some(HANGS_LOOK)
        };
        let mut fds = [
            PollFd::new(notifier.control.stream(), PollFlags::IN | behind),
            PollFd::new(&*notifier.wake, PollFlags::IN),
        ];
        let timeout = timeout.and_then(|limit| Timespec::try_from(limit).ok());
        _ = poll(&mut fds, timeout.as_ref());
    }

    /// Reads the orders that have arrived and carries them out.
    fn read(&self, cutter: &mut Cutter) -> Result<(), String> {
        let mut bytes = [0; 16 * 1024];
        loop {
            match self.host.notifier.control.stream().read(&mut bytes) {
                Ok(0) => return Err("the service is gone".to_owned()),
                Ok(count) => cutter.push(&bytes[..count]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(format!("the control connection broke: {e}")),
            }
            self.host.notifier.heard();
            while let Some(order) = cutter.read().map_err(|e| e.to_string())? {
                self.host.server.control(order);
            }
        }
    }

    /// Ends a process whose toolbox hangs, so that the service starts another one. The work that is under way is lost;
    /// its callers get the reason.
    fn die(&self, reason: &str) -> ! {
        self.host.warn(reason);
        if let Some(plugin) = self.host.server.plugin() {
            // Halted here, because the fresh process can only call `safe_stop`, which not every toolbox has.
            halt(plugin);
        }
        kill_self()
    }

    /// Brings everything to rest and ends the process.
    fn end(&self, reason: &str) -> ! {
        self.host.warn(reason);
        if self.host.server.is_moving() {
            // In case the service still exists: this is an emergency stop, and nothing moves after it until a resume.
            self.host.notifier.data(Notice::Event(Raw::of(&Event {
                kind: "latched".to_owned(),
                severity: Severity::Error,
                data: Some(serde_json::json!({ "reason": reason })),
            })));
        }
        if let Some(plugin) = self.host.server.plugin() {
            if !halt(plugin) {
                self.safe_stop();
            }
            self.host.close_within(LAST_CLOSE);
        }
        kill_self()
    }

    /// Starts a fresh process that brings the hardware to rest, because this one cannot.
    fn safe_stop(&self) {
        let Ok(config) = input(&self.host.config.lock()) else {
            return;
        };
        // The fresh process goes on alone, because this process ends before it.
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

/// Halts everything and voids the starts that are on their way; false if the halt was not confirmed in time.
fn halt(plugin: &Plugin) -> bool {
    let halt = Halt {
        subsystems: vec!["all".to_owned()],
        emergency: true,
        stop_epoch: plugin.runs.stop_epoch().saturating_add(1),
    };
    let (tell, told) = channel();
    plugin.halt(&halt, Box::new(move |said| _ = tell.send(said.is_ok())));
    told.recv_timeout(LAST_HALT).unwrap_or(false)
}
